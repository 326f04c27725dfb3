// Calls weir as a service with grpc-go would, and prints the results as JSON in the format of ../interop-report.ts.
//
//	program ADDRESS [CA CERTIFICATE KEY]
//
// With three PEM files, the connection uses TLS with a client certificate. The line "watching" reports the first answer
// to the watch of the health service. The report follows when weir has ended that stream.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
)

const burstSize = 200

type decision struct {
	Code      string            `json:"code"`
	Limit     uint32            `json:"limit"`
	Remaining uint32            `json:"remaining"`
	Headers   map[string]string `json:"headers"`
}

type failure struct {
	Status  codes.Code `json:"status"`
	Message string     `json:"message"`
}

type report struct {
	Allowed       decision `json:"allowed"`
	Denied        decision `json:"denied"`
	Error         failure  `json:"error"`
	UnknownMethod failure  `json:"unknownMethod"`
	Burst         struct {
		OK        int `json:"ok"`
		OverLimit int `json:"overLimit"`
	} `json:"burst"`
	Services []string `json:"services"`
	Health   struct {
		Check    string     `json:"check"`
		Unknown  codes.Code `json:"unknown"`
		Watch    []string   `json:"watch"`
		WatchEnd codes.Code `json:"watchEnd"`
	} `json:"health"`
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("grpc-go", grpc.Version)
		return
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 && len(args) != 4 {
		return errors.New("usage: program ADDRESS [CA CERTIFICATE KEY]")
	}
	transport, err := transportCredentials(args[1:])
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient(args[0], grpc.WithTransportCredentials(transport))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	var result report
	client := rls.NewRateLimitServiceClient(connection)
	if result.Allowed, err = decide(ctx, client, "tenant", "go"); err != nil {
		return fmt.Errorf("allowed: %w", err)
	}
	if result.Denied, err = decide(ctx, client, "closed", "go"); err != nil {
		return fmt.Errorf("denied: %w", err)
	}
	_, err = client.ShouldRateLimit(ctx, &rls.RateLimitRequest{})
	result.Error = failureOf(err)
	err = connection.Invoke(ctx, "/envoy.service.ratelimit.v3.RateLimitService/Other", &rls.RateLimitRequest{}, &rls.RateLimitResponse{})
	result.UnknownMethod = failureOf(err)
	if err = burst(ctx, client, &result); err != nil {
		return fmt.Errorf("burst: %w", err)
	}
	if result.Services, err = listServices(ctx, connection); err != nil {
		return fmt.Errorf("reflection: %w", err)
	}
	if err = watch(ctx, connection, &result); err != nil {
		return fmt.Errorf("health: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

func transportCredentials(files []string) (credentials.TransportCredentials, error) {
	if len(files) == 0 {
		return insecure.NewCredentials(), nil
	}
	ca, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s holds no certificate", files[0])
	}
	certificate, err := tls.LoadX509KeyPair(files[1], files[2])
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}}), nil
}

func failureOf(err error) failure {
	return failure{status.Code(err), status.Convert(err).Message()}
}

func ask(ctx context.Context, client rls.RateLimitServiceClient, key, value string) (*rls.RateLimitResponse, error) {
	return client.ShouldRateLimit(ctx, &rls.RateLimitRequest{
		Domain: "interop",
		Descriptors: []*common.RateLimitDescriptor{
			{Entries: []*common.RateLimitDescriptor_Entry{{Key: key, Value: value}}},
		},
	})
}

func decide(ctx context.Context, client rls.RateLimitServiceClient, key, value string) (decision, error) {
	response, err := ask(ctx, client, key, value)
	if err != nil {
		return decision{}, err
	}
	if len(response.Statuses) != 1 {
		return decision{}, fmt.Errorf("%d statuses for one descriptor", len(response.Statuses))
	}
	headers := map[string]string{}
	for _, header := range response.ResponseHeadersToAdd {
		headers[header.Key] = header.Value
	}
	first := response.Statuses[0]
	return decision{response.OverallCode.String(), first.CurrentLimit.GetRequestsPerUnit(), first.LimitRemaining, headers}, nil
}

func burst(ctx context.Context, client rls.RateLimitServiceClient, result *report) error {
	var group sync.WaitGroup
	answers := make([]*rls.RateLimitResponse, burstSize)
	failures := make([]error, burstSize)
	for index := range burstSize {
		group.Add(1)
		go func() {
			defer group.Done()
			answers[index], failures[index] = ask(ctx, client, "tenant", "go-burst")
		}()
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	for _, answer := range answers {
		if answer.OverallCode == rls.RateLimitResponse_OK {
			result.Burst.OK++
		} else {
			result.Burst.OverLimit++
		}
	}
	return nil
}

func listServices(ctx context.Context, connection *grpc.ClientConn) ([]string, error) {
	stream, err := reflection.NewServerReflectionClient(connection).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, err
	}
	request := &reflection.ServerReflectionRequest{
		MessageRequest: &reflection.ServerReflectionRequest_ListServices{},
	}
	if err = stream.Send(request); err != nil {
		return nil, err
	}
	answer, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, service := range answer.GetListServicesResponse().GetService() {
		names = append(names, service.Name)
	}
	sort.Strings(names)
	return names, stream.CloseSend()
}

func watch(ctx context.Context, connection *grpc.ClientConn, result *report) error {
	client := health.NewHealthClient(connection)
	check, err := client.Check(ctx, &health.HealthCheckRequest{})
	if err != nil {
		return err
	}
	result.Health.Check = check.Status.String()
	_, err = client.Check(ctx, &health.HealthCheckRequest{Service: "other"})
	result.Health.Unknown = status.Code(err)

	stream, err := client.Watch(ctx, &health.HealthCheckRequest{})
	if err != nil {
		return err
	}
	for {
		answer, err := stream.Recv()
		if err != nil {
			result.Health.WatchEnd = status.Code(err)
			return nil
		}
		result.Health.Watch = append(result.Health.Watch, answer.Status.String())
		if len(result.Health.Watch) == 1 {
			fmt.Println("watching")
		}
	}
}
