package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// healthCommand asks an instance on this machine whether it is ready, where there is no other program to ask with.
type healthCommand struct {
	PrivateListen string `name:"private-listen" env:"DAESA_PRIVATE_LISTEN" default:"127.0.0.1:9090" help:"Where the instance has its metrics and health."`
}

const healthTimeout = 2 * time.Second

func (c healthCommand) run(ctx context.Context, stdout io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.PrivateListen+"/readyz", http.NoBody)
	if err != nil {
		return misuse{fmt.Errorf("--private-listen: %w", err)}
	}
	answer, err := (&http.Client{Timeout: healthTimeout}).Do(request)
	if err != nil {
		return fmt.Errorf("ask the instance: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err != nil {
		return fmt.Errorf("read what the instance says: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the instance is not ready: %s", said)
	}
	if _, err := stdout.Write(said); err != nil {
		return fmt.Errorf("print what the instance says: %w", err)
	}
	return nil
}
