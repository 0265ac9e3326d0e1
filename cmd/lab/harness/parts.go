package harness

import (
	"context"
	"encoding/json"
	"time"
)

// The parts of a bench one by one, for an experiment that puts them together in another way.

// StartGateway starts a simulated gateway. The caller stops it.
func (p Programs) StartGateway(ctx context.Context, folder string) (*Gateway, error) {
	return p.gateway(ctx, folder)
}

// StartInstance starts the service over a database, before a gateway, and returns when it is ready. The caller stops it.
func (p Programs) StartInstance(ctx context.Context, folder, name, databaseURL, gatewayURL string, settings ...string) (*Instance, error) {
	return p.serve(ctx, folder, name, databaseURL, gatewayURL, settings)
}

// With is the same programs with another one in place of the service.
func (p Programs) With(daesa string) Programs {
	p.daesa = daesa
	return p
}

// Stop stops the gateway.
func (g *Gateway) Stop() error { return g.stop() }

// Processor is what the gateway has used so far.
func (g *Gateway) Processor() (time.Duration, error) { return ProcessorOf(g.pid()) }

// Put gives the gateway a payment object, as if it had always been there.
func (g *Gateway) Put(ctx context.Context, payment []byte) error {
	return g.control(ctx, "payment", json.RawMessage(payment), nil)
}

// Stop stops the instance in order.
func (i *Instance) Stop() error { return i.stop() }

// Processor is what the instance has used so far.
func (i *Instance) Processor() (time.Duration, error) { return ProcessorOf(i.pid()) }

// ProcessorOf is what a process has used so far.
func ProcessorOf(pid int) (time.Duration, error) {
	used, err := usageOf(pid)
	return used.processor, err
}
