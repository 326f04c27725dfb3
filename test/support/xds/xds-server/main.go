// An xDS management server (ADS, state of the world) made with go-control-plane, for tests of an xDS client. Tests talk to its control
// port in JSON over HTTP (../xds-server.ts):
//
//	PUT /snapshot   {"node", "version", "resources"}; a resource is {"json": a RateLimitConfig in protobuf JSON} or {"bytes": one in base64,
//	                where fields that this program does not know stay what they are}
//	GET /requests   every DiscoveryRequest so far, in order
//
// The line "listening XDS_PORT CONTROL_PORT" says that both ports are open.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// One received DiscoveryRequest.
type request struct {
	Stream        int64             `json:"stream"`
	NodeID        string            `json:"nodeId"`
	NodeMetadata  map[string]any    `json:"nodeMetadata"`
	Headers       map[string]string `json:"headers"`
	TypeURL       string            `json:"typeUrl"`
	ResourceNames []string          `json:"resourceNames"`
	Version       string            `json:"version"`
	Nonce         string            `json:"nonce"`
	// Absent in an ACK.
	Error *string `json:"error,omitempty"`
}

// Requests received so far.
type record struct {
	mutex    sync.Mutex
	headers  map[int64]map[string]string
	requests []request
}

func (r *record) opened(ctx context.Context, stream int64, _ string) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	headers := map[string]string{}
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		for name, values := range md {
			headers[name] = values[0]
		}
	}
	r.headers[stream] = headers
	return nil
}

func (r *record) received(stream int64, message *discovery.DiscoveryRequest) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	one := request{
		Stream:        stream,
		NodeID:        message.GetNode().GetId(),
		NodeMetadata:  message.GetNode().GetMetadata().AsMap(),
		Headers:       r.headers[stream],
		TypeURL:       message.GetTypeUrl(),
		ResourceNames: message.GetResourceNames(),
		Version:       message.GetVersionInfo(),
		Nonce:         message.GetResponseNonce(),
	}
	if message.GetErrorDetail() != nil {
		text := message.GetErrorDetail().GetMessage()
		one.Error = &text
	}
	r.requests = append(r.requests, one)
	return nil
}

func (r *record) serve(w http.ResponseWriter, _ *http.Request) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	w.Header().Set("content-type", "application/json")
	_ = json.NewEncoder(w).Encode(r.requests)
}

type snapshot struct {
	Node      string `json:"node"`
	Version   string `json:"version"`
	Resources []struct {
		JSON  json.RawMessage `json:"json"`
		Bytes []byte          `json:"bytes"`
	} `json:"resources"`
}

func setSnapshot(snapshots cache.SnapshotCache, body snapshot) error {
	resources := make([]types.Resource, 0, len(body.Resources))
	for _, one := range body.Resources {
		config := &ratelimit.RateLimitConfig{}
		if err := proto.Unmarshal(one.Bytes, config); err != nil {
			return err
		}
		if len(one.JSON) > 0 {
			if err := protojson.Unmarshal(one.JSON, config); err != nil {
				return err
			}
		}
		resources = append(resources, config)
	}
	all, err := cache.NewSnapshot(body.Version, map[resource.Type][]types.Resource{
		resource.RateLimitConfigType: resources,
	})
	if err != nil {
		return err
	}
	return snapshots.SetSnapshot(context.Background(), body.Node, all)
}

func tlsConfig(certFile, keyFile, clientCA string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	if clientCA == "" {
		return config, nil
	}
	pem, err := os.ReadFile(clientCA)
	if err != nil {
		return nil, err
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in " + clientCA)
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	return config, nil
}

func run() error {
	version := flag.Bool("version", false, "print what this is")
	port := flag.Int("port", 0, "xDS port on 127.0.0.1")
	certFile := flag.String("cert", "", "certificate (PEM), for TLS")
	keyFile := flag.String("key", "", "its key (PEM)")
	clientCA := flag.String("client-ca", "", "issuer that a client's certificate must have (PEM)")
	flag.Parse()
	if *version {
		fmt.Println("xds-server on go-control-plane")
		return nil
	}

	options := []grpc.ServerOption{
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 50 * time.Millisecond}),
	}
	if *certFile != "" {
		config, err := tlsConfig(*certFile, *keyFile, *clientCA)
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	seen := &record{headers: map[int64]map[string]string{}, requests: []request{}}
	snapshots := cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	callbacks := server.CallbackFuncs{
		StreamOpenFunc:    seen.opened,
		StreamRequestFunc: seen.received,
		StreamClosedFunc:  func(int64, *core.Node) {},
	}
	grpcServer := grpc.NewServer(options...)
	discovery.RegisterAggregatedDiscoveryServiceServer(
		grpcServer, server.NewServer(context.Background(), snapshots, callbacks))

	http.HandleFunc("GET /requests", seen.serve)
	http.HandleFunc("PUT /snapshot", func(w http.ResponseWriter, r *http.Request) {
		var body snapshot
		err := json.NewDecoder(r.Body).Decode(&body)
		if err == nil {
			err = setSnapshot(snapshots, body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})

	xds, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		return err
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("listening %d %d\n", xds.Addr().(*net.TCPAddr).Port, control.Addr().(*net.TCPAddr).Port)
	go func() { log.Fatal(http.Serve(control, nil)) }()
	return grpcServer.Serve(xds)
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
