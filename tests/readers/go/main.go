// An HTTP server that reads each message with encoding/json and reports it.
//
// It prints its address first, and then one JSON object a line: request, method, names.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
)

type message struct {
	Method string `json:"method"`
	Params params `json:"params"`
}

// Members of all methods: encoding/json matches them in any letter case.
type params struct {
	Name          string        `json:"name"`
	URI           string        `json:"uri"`
	TaskID        string        `json:"taskId"`
	Ref           reference     `json:"ref"`
	Notifications notifications `json:"notifications"`
}

type reference struct {
	Name string `json:"name"`
	URI  string `json:"uri"`
}

type notifications struct {
	ResourceSubscriptions []string `json:"resourceSubscriptions"`
}

type line struct {
	Request string   `json:"request"`
	Method  string   `json:"method"`
	Names   []string `json:"names"`
}

func (m message) names() []string {
	switch p := m.Params; m.Method {
	case "tools/call", "prompts/get":
		return present(p.Name)
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		return present(p.URI)
	case "completion/complete":
		return append(present(p.Ref.Name), present(p.Ref.URI)...)
	case "subscriptions/listen":
		return append([]string{}, p.Notifications.ResourceSubscriptions...)
	case "tasks/get", "tasks/result", "tasks/update", "tasks/cancel":
		return present(p.TaskID)
	}
	return []string{}
}

func present(name string) []string {
	if name == "" {
		return []string{}
	}
	return []string{name}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	var printing sync.Mutex
	out := json.NewEncoder(os.Stdout)
	answer := func(response http.ResponseWriter, request *http.Request) {
		response.Header().Set("Content-Type", "application/json")
		body, err := io.ReadAll(request.Body)
		var read message
		if err != nil || json.Unmarshal(body, &read) != nil {
			response.WriteHeader(http.StatusBadRequest)
		} else {
			printing.Lock()
			_ = out.Encode(line{request.Header.Get("X-Request-Id"), read.Method, read.names()})
			printing.Unlock()
		}
		_, _ = io.WriteString(response, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}
	fmt.Fprintln(os.Stderr, http.Serve(listener, http.HandlerFunc(answer)))
	os.Exit(1)
}
