package pages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"daesa/internal/people"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/reconcile/report"
)

const (
	// sendingAtOnce is how many files are made at once: each has a connection that pages need, for as long as its rows take.
	sendingAtOnce = 2
	// sendingWait is how long a file waits for its turn: who waits has a place that other pages need.
	sendingWait = 10 * time.Second
	// sendSlowest is how long a client may take for each piece of a file.
	sendSlowest = 30 * time.Second
	sendPiece   = 256 << 10
)

// sendReport sends a report as a file. It is written aside first, at the speed of the database: whoever fetches it slowly
// holds no snapshot, and one that fails half-way is an error and not half a file.
func (p *Pages) sendReport(w http.ResponseWriter, r *http.Request, who people.Account, kind reportKind, format report.Format, make maker) (err error) {
	ctx, stop := context.WithTimeout(r.Context(), sendingWait)
	defer stop()
	select {
	case p.sending <- struct{}{}:
		defer func() { <-p.sending }()
	case <-ctx.Done():
		return web.WithRetryAfter(ErrSending, sendingWait)
	}
	aside, err := os.CreateTemp("", "daesa-report-*")
	if err != nil {
		return fmt.Errorf("make room for the file: %w", err)
	}
	defer func() { err = errors.Join(err, aside.Close(), os.Remove(aside.Name())) }()
	language := p.languageOf(r)
	if err := make(r.Context(), func(told report.Report) error { return told.Write(aside, format, language) }); err != nil {
		return err
	}
	err = p.cfg.Accounts.Note(r.Context(), people.Deed{
		By: people.Person(who.Name), Action: people.ActionReportTaken, Subject: subjectOf(kind, r.URL.Query()), Detail: string(format), Source: p.source(r),
	})
	if err != nil {
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

// subjectOf is what a report is of, for the trail.
func subjectOf(kind reportKind, query url.Values) string {
	of := make(url.Values)
	for _, name := range []string{"day", "from", "to", "order_id", "as_of", "known_at"} {
		if value := query.Get(name); value != "" {
			of.Set(name, value)
		}
	}
	return strings.TrimSuffix(string(kind)+" "+of.Encode(), " ")
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
