package main

import (
	"context"
	"fmt"
	"os"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

func main() {
	// The program uses one connection.
	connection, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	defer connection.Close()
	client := rls.NewRateLimitServiceClient(connection)

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	answer, err := client.ShouldRateLimit(ctx, &rls.RateLimitRequest{
		Domain: "shop",
		Descriptors: []*common.RateLimitDescriptor{
			{Entries: []*common.RateLimitDescriptor_Entry{{Key: "customer", Value: os.Args[2]}}},
		},
	})
	if err != nil { // weir is down or late: this program lets the request pass
		fmt.Printf("no decision (%s), the request passes\n", status.Code(err))
		return
	}
	for _, header := range answer.ResponseHeadersToAdd {
		fmt.Printf("%s: %s\n", header.Key, header.Value)
	}
	if answer.OverallCode == rls.RateLimitResponse_OVER_LIMIT {
		fmt.Println("denied: answer with status 429")
	} else {
		fmt.Println("the request passes")
	}
}
