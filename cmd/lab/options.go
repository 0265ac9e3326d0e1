package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options say how large and how long a run is.
type options struct {
	payments int           // canceled payments, one notice each
	over     time.Duration // in which the first delivery of all notices begins
	slow     time.Duration // what the slow gateway takes
	healthy  time.Duration // what the healthy gateway takes
	budget   time.Duration // of our question to the gateway
	burst    int           // notices of the burst
	burstIn  time.Duration // in which they arrive
	small    int           // the limit that is too small, a minute
	large    int           // the limit that is not
	patience time.Duration // after which a refused notice of the burst comes again
	sizes    []int         // payments in the books, one length of history after the other
	out      string        // folder for the results
	verbose  bool
	quick    bool
	busy     bool // measure although the machine does other work
}

// What a run may not exceed: the lab shows shapes, it is not for loading a machine.
const (
	paymentsMax = 1000
	sizeMax     = 10_000_000
	overMax     = 5 * time.Minute
	answerMax   = 10 * time.Second // what the sender of a notice waits for
)

func readOptions(args []string, diagnostics io.Writer) (options, []string, error) {
	var o options
	flags := flag.NewFlagSet("lab run", flag.ContinueOnError)
	flags.SetOutput(diagnostics)
	flags.IntVar(&o.payments, "payments", 100, "canceled payments, one notice each")
	flags.DurationVar(&o.over, "over", 20*time.Second, "time in which the notices arrive; they had 60s")
	flags.DurationVar(&o.slow, "slow", 8*time.Second, "what the slow gateway takes")
	flags.DurationVar(&o.healthy, "healthy", 300*time.Millisecond, "what the healthy gateway takes")
	flags.DurationVar(&o.budget, "query-budget", 3*time.Second, "what our question to the gateway may take")
	flags.IntVar(&o.burst, "burst", 200, "notices of the burst")
	flags.DurationVar(&o.burstIn, "burst-in", 30*time.Second, "time in which the burst arrives; tokens refill in real time")
	flags.IntVar(&o.small, "small-limit", 100, "the limit that is too small, deliveries a minute")
	flags.IntVar(&o.large, "large-limit", 300, "the limit that is not, deliveries a minute")
	flags.DurationVar(&o.patience, "patience", 61*time.Second, "after which a refused notice of the burst comes again")
	flags.Func("sizes", "payments in the books, rising, for audit-scale (default 1000000,3000000,10000000)", func(text string) (err error) {
		o.sizes, err = readSizes(text)
		return err
	})
	flags.StringVar(&o.out, "out", "", "folder in which the results are kept; empty keeps none")
	flags.BoolVar(&o.verbose, "v", false, "print the service's warnings")
	flags.BoolVar(&o.quick, "quick", false, "10 payments and short times: shows that the lab works, and no figures worth keeping")
	flags.BoolVar(&o.busy, "busy", false, "measure although the machine does other work; the load average is written down")
	var names []string
	for rest := args; ; rest = flags.Args()[1:] { // flags may stand before and after a name
		if err := flags.Parse(rest); err != nil {
			return options{}, nil, err
		}
		if flags.NArg() == 0 {
			break
		}
		names = append(names, flags.Arg(0))
	}
	if o.sizes == nil {
		o.sizes = []int{1_000_000, 3_000_000, sizeMax}
	}
	if o.quick {
		o = o.shrunk()
	}
	return o, names, o.validate()
}

// shrunk is a run of seconds. The burst keeps its ratio of notices to tokens: two for each.
func (o options) shrunk() options {
	o.payments, o.over = 10, time.Second
	o.budget, o.slow, o.healthy = 500*time.Millisecond, time.Second, 50*time.Millisecond
	o.sizes = []int{20_000, 40_000}
	o.burst, o.burstIn, o.small, o.large, o.patience = 20, time.Second, 10, 30, time.Minute
	return o
}

// readSizes reads rising numbers of payments.
func readSizes(text string) (sizes []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number of payments: %w", part, err)
		}
		sizes = append(sizes, n)
	}
	if least := 2 * 10 * dirtyKeys; sizes[0] < least || sizes[len(sizes)-1] > sizeMax || !slices.IsSorted(sizes) {
		return nil, fmt.Errorf("numbers of payments rise from %d to %d at most", least, sizeMax)
	}
	return sizes, nil
}

func (o options) validate() error {
	switch {
	case o.payments < 1 || o.payments > paymentsMax || o.burst < 1 || o.burst > paymentsMax:
		return errors.New("a run has between 1 and 1,000 payments")
	case o.over <= 0 || o.over > overMax || o.burstIn <= 0 || o.burstIn > overMax || o.patience < 0 || o.patience > overMax:
		return errors.New("arrivals and waits are above nothing and at most five minutes")
	case o.budget <= 0 || o.budget > 8*time.Second:
		return errors.New("the query budget must leave time to answer within 10 s: at most 8 s")
	case o.slow <= o.budget:
		return errors.New("the slow gateway must take longer than the query budget")
	case o.healthy < 0 || o.healthy >= o.budget:
		return errors.New("the healthy gateway must answer within the query budget")
	case o.small < 1 || o.large <= o.small:
		return errors.New("the small limit is at least 1 and below the large one")
	}
	return nil
}
