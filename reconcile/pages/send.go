package pages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"time"

	"daesa/ledger"
	"daesa/reconcile/report"
)

const (
	// sendingAtOnce is how many files are made at once: each has a connection that pages need, for as long as its rows take.
	sendingAtOnce = 2
	// sendSlowest is how long a client may take for each piece of a file.
	sendSlowest = 30 * time.Second
	sendPiece   = 256 << 10
)

// sendReport sends a report as a file. It is written aside first, at the speed of the database: whoever fetches it slowly
// holds no snapshot, and one that fails half-way is an error and not half a file.
func (p *Pages) sendReport(w http.ResponseWriter, r *http.Request, kind reportKind, format report.Format, make maker) (err error) {
	select {
	case p.sending <- struct{}{}:
		defer func() { <-p.sending }()
	case <-r.Context().Done():
		return fmt.Errorf("wait for other files to be made: %w", context.Cause(r.Context()))
	}
	aside, err := os.CreateTemp("", "daesa-report-*")
	if err != nil {
		return fmt.Errorf("make room for the file: %w", err)
	}
	defer func() { err = errors.Join(err, aside.Close(), os.Remove(aside.Name())) }()
	language := languageOf(r)
	if err := make(r.Context(), func(told report.Report) error { return told.Write(aside, format, language) }); err != nil {
		return err
	}
	size, err := aside.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("measure the file: %w", err)
	}
	if _, err := aside.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	name := fmt.Sprintf("daesa-%s-%s.%s", kind, p.cfg.Now().In(ledger.Seoul()).Format("20060102-150405"), format)
	header := w.Header()
	header.Set("Content-Type", contentType(format))
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	header.Set("Content-Length", strconv.FormatInt(size, 10))
	send(w, aside)
	return nil
}

// send hands the file over piece by piece. A client that takes a piece too slowly, or has gone, is no failure of ours: it
// sees that the file is not whole by its length.
func send(w http.ResponseWriter, from io.Reader) {
	control := http.NewResponseController(w)
	for {
		_ = control.SetWriteDeadline(time.Now().Add(sendSlowest)) //nolint:forbidigo // of a connection
		if n, err := io.CopyN(w, from, sendPiece); err != nil || n < sendPiece {
			return
		}
	}
}

func contentType(format report.Format) string {
	switch format {
	case report.CSV:
		return "text/csv; charset=utf-8"
	case report.XLSX:
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	case report.JSON:
		return "application/json"
	}
	return "application/octet-stream"
}
