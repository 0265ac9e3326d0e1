package seal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgconn"
)

// errCopy reports bytes that are not the binary form of COPY. It is a mistake of ours or of the connection, no finding.
var errCopy = errors.New("not the binary form of COPY")

// copyHeader opens the binary form of COPY; flags and an extension follow.
const copyHeader = "PGCOPY\n\xff\r\n\x00"

// batchBytes is how much is handed from the connection to the reader at once. One hand-over per row would cost more
// than the row.
const batchBytes = 256 << 10

// copied reads the rows of a COPY … TO STDOUT (FORMAT binary). The fields of a row are valid until the next one is read;
// nothing is allocated per row.
type copied struct {
	next   func() ([]byte, error) // the next batch; io.EOF after the last
	rest   []byte                 // what was not read yet
	opened bool
	fields [][]byte
}

// row reads the next row, a nil field for NULL; nil after the last row.
func (c *copied) row() ([][]byte, error) {
	if !c.opened {
		if err := c.open(); err != nil {
			return nil, err
		}
	}
	for {
		size, count, whole := measureRow(c.rest)
		switch {
		case whole && count < 0:
			return nil, nil //nolint:nilnil // the end mark
		case whole:
			c.split(count)
			c.rest = c.rest[size:]
			return c.fields, nil
		}
		if err := c.more(); err != nil {
			return nil, err
		}
	}
}

// open skips what comes before the first row.
func (c *copied) open() error {
	const fixed = len(copyHeader) + 8
	for len(c.rest) < fixed || len(c.rest) < fixed+int(binary.BigEndian.Uint32(c.rest[fixed-4:])) {
		if err := c.more(); err != nil {
			return err
		}
	}
	if string(c.rest[:len(copyHeader)]) != copyHeader {
		return errCopy
	}
	c.rest = c.rest[fixed+int(binary.BigEndian.Uint32(c.rest[fixed-4:])):]
	c.opened = true
	return nil
}

// measureRow says how many bytes and fields the first row has, and whether all of it is there.
func measureRow(b []byte) (size, count int, whole bool) {
	if len(b) < 2 {
		return 0, 0, false
	}
	count = int(int16(binary.BigEndian.Uint16(b))) //nolint:gosec // −1 is the end mark
	size = 2
	for range count {
		if len(b) < size+4 {
			return 0, 0, false
		}
		length := int(int32(binary.BigEndian.Uint32(b[size:]))) //nolint:gosec // −1 is NULL
		size += 4 + max(length, 0)
	}
	return size, count, len(b) >= size
}

func (c *copied) split(count int) {
	c.fields = c.fields[:0]
	at := 2
	for range count {
		length := int(int32(binary.BigEndian.Uint32(c.rest[at:]))) //nolint:gosec // −1 is NULL
		at += 4
		if length < 0 {
			c.fields = append(c.fields, nil)
			continue
		}
		c.fields = append(c.fields, c.rest[at:at+length:at+length])
		at += length
	}
}

// more adds the next batch to what is left of this one, which is copied first: its batch goes back.
func (c *copied) more() error {
	var left []byte
	if len(c.rest) > 0 {
		left = append(left, c.rest...)
	}
	batch, err := c.next()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it ends within a row", errCopy)
	}
	if err != nil {
		return err
	}
	c.rest = batch
	if left != nil {
		c.rest = append(left, batch...)
	}
	return nil
}

// copyWhole reads what a COPY returns into memory: for pieces whose size is bounded.
func copyWhole(ctx context.Context, conn *pgconn.PgConn, into *bytes.Buffer, sql string) (*copied, error) {
	into.Reset()
	if _, err := conn.CopyTo(ctx, into, binaryCopy(sql)); err != nil {
		return nil, fmt.Errorf("copy: %w", err)
	}
	left := into.Bytes()
	return &copied{next: func() ([]byte, error) {
		if left == nil {
			return nil, io.EOF
		}
		batch := left
		left = nil
		return batch, nil
	}}, nil
}

func binaryCopy(sql string) string { return "COPY (" + sql + ") TO STDOUT (FORMAT binary)" }

// flow carries batches from a connection that copies to a reader in another goroutine. It holds a fixed number of
// batches, which go round.
type flow struct {
	full, empty chan []byte
	current     []byte
	ctx         context.Context //nolint:containedctx // io.Writer has no room for one
	err         error           // why it ended; set before full is closed
}

// flowBatches is how many batches are on the way at once.
const flowBatches = 4

// startFlow copies in a goroutine of its own. The reader sees its error, or the end.
func startFlow(ctx context.Context, conn *pgconn.PgConn, sql string) *flow {
	f := &flow{full: make(chan []byte, flowBatches), empty: make(chan []byte, flowBatches+2), ctx: ctx}
	for range flowBatches {
		f.empty <- make([]byte, 0, batchBytes+batchBytes/8)
	}
	f.current = make([]byte, 0, batchBytes+batchBytes/8)
	go func() {
		defer close(f.full)
		if _, err := conn.CopyTo(ctx, f, binaryCopy(sql)); err != nil {
			f.err = fmt.Errorf("copy: %w", err)
			return
		}
		f.err = f.pass(len(f.current) == 0)
	}()
	return f
}

// Write collects what the connection received.
func (f *flow) Write(p []byte) (int, error) {
	f.current = append(f.current, p...)
	if len(f.current) < batchBytes {
		return len(p), nil
	}
	return len(p), f.pass(false)
}

// pass hands the batch on and takes an empty one.
func (f *flow) pass(nothing bool) error {
	if nothing {
		return nil
	}
	select {
	case f.full <- f.current:
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
	select {
	case f.current = <-f.empty:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}

// reader reads the flow's rows. A batch goes back as soon as the next is asked for.
func (f *flow) reader() *copied {
	var held []byte
	return &copied{next: func() ([]byte, error) {
		if held != nil {
			f.empty <- held[:0]
		}
		batch, open := <-f.full
		if !open {
			held = nil
			if f.err != nil {
				return nil, f.err
			}
			return nil, io.EOF
		}
		held = batch
		return batch, nil
	}}
}

// drain waits for the copying goroutine to end, so that its connection is free. The context must be over, or the
// reader be at the end.
func (f *flow) drain() {
	for range f.full {
		continue
	}
}
