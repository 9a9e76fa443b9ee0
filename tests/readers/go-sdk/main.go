// An MCP server on the Go SDK that reports each message it parsed, and each name that a handler received.
//
// It prints its address first, and then one JSON object a line: request, method, names.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type line struct {
	Request string   `json:"request"`
	Method  string   `json:"method"`
	Names   []string `json:"names"`
}

var printing sync.Mutex

func report(extra *mcp.RequestExtra, method string, names ...string) {
	if extra == nil || extra.Header.Get("X-Request-Id") == "" {
		return
	}
	// The SDK has the empty string where a member is absent.
	names = slices.DeleteFunc(append([]string{}, names...), func(name string) bool { return name == "" })
	printing.Lock()
	defer printing.Unlock()
	_ = json.NewEncoder(os.Stdout).Encode(line{extra.Header.Get("X-Request-Id"), method, names})
}

func namesOf(params mcp.Params) []string {
	switch p := params.(type) {
	case *mcp.CallToolParamsRaw:
		return []string{p.Name}
	case *mcp.GetPromptParams:
		return []string{p.Name}
	case *mcp.ReadResourceParams:
		return []string{p.URI}
	case *mcp.SubscribeParams:
		return []string{p.URI}
	case *mcp.UnsubscribeParams:
		return []string{p.URI}
	case *mcp.CompleteParams:
		if p.Ref != nil && p.Ref.Type == "ref/resource" {
			return []string{p.Ref.URI}
		} else if p.Ref != nil {
			return []string{p.Ref.Name}
		}
	case *mcp.SubscriptionsListenParams:
		if p.Notifications != nil {
			return p.Notifications.ResourceSubscriptions
		}
	}
	return nil
}

func parsed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		report(request.GetExtra(), method, namesOf(request.GetParams())...)
		return next(ctx, method, request)
	}
}

func read(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	report(request.Extra, "resources/read", request.Params.URI)
	contents := &mcp.ResourceContents{URI: request.Params.URI, Text: "text"}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
}

// Every protected name exists, so that a handler runs for each message that reaches one.
func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "reader", Version: "1.0.0"}, &mcp.ServerOptions{
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	for _, name := range []string{"echo", "admin_wipe"} {
		tool := &mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}
		server.AddTool(tool, func(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			report(request.Extra, "tools/call", name)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil
		})
	}
	for _, name := range []string{"greeting", "secret_plan"} {
		prompt := &mcp.Prompt{Name: name}
		server.AddPrompt(prompt, func(_ context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			report(request.Extra, "prompts/get", name)
			return &mcp.GetPromptResult{}, nil
		})
	}
	for _, folder := range []string{"public", "secret"} {
		server.AddResource(&mcp.Resource{Name: folder, URI: "file:///" + folder + "/x"}, read)
		template := &mcp.ResourceTemplate{Name: folder, URITemplate: "file:///" + folder + "/{+name}"}
		server.AddResourceTemplate(template, read)
	}
	server.AddReceivingMiddleware(parsed)
	return server
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	server := newServer()
	get := func(*http.Request) *mcp.Server { return server }
	sessions := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true})
	stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true, Stateless: true})
	// The SDK serves revisions without sessions from a stateless handler alone.
	handler := http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if request.Header.Get("MCP-Protocol-Version") >= "2026" {
			stateless.ServeHTTP(response, request)
		} else {
			sessions.ServeHTTP(response, request)
		}
	})
	fmt.Fprintln(os.Stderr, http.Serve(listener, handler))
	os.Exit(1)
}
