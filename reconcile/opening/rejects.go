package opening

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"daesa/internal/sheet"
)

// ownColumns are those that a rejects file has of its own, and that are read over.
func ownColumns() []string { return []string{columnMark, columnLine, columnReason} }

const (
	columnMark   = "text_mark" // says that the texts of the file are guarded, see [sheet.Guard]
	columnLine   = "line"
	columnReason = "reason"
)

// WriteRejects writes rejected rows as they came, with their line and the reason, for a spreadsheet: what it would run or
// change is guarded, and [ReadCSV] takes the marks away. Amounts and counts stay numbers, so that they can be corrected.
func WriteRejects(w io.Writer, header []string, rows []Row) error {
	_, markErr := io.WriteString(w, sheet.ByteOrderMark)
	var keep []int
	var titles []string
	for n, title := range header {
		if !slices.Contains(ownColumns(), nameOf(title)) {
			keep, titles = append(keep, n), append(titles, title)
		}
	}
	lines := [][]string{append(titles, ownColumns()...)}
	for _, r := range rows {
		if r.Result != ResultRejected {
			continue
		}
		var cells []string
		for _, n := range keep {
			cell := ""
			if n < len(r.Claim.Fields) {
				cell = guarded(nameOf(header[n]), r.Claim.Fields[n])
			}
			cells = append(cells, cell)
		}
		lines = append(lines, append(cells, "", strconv.Itoa(r.Claim.Line), sheet.Guard(r.Reason)))
	}
	if err := errors.Join(markErr, csv.NewWriter(w).WriteAll(lines)); err != nil {
		return fmt.Errorf("write the rejected rows: %w", err)
	}
	return nil
}

// guarded is a cell of a column. A reader of CSV takes one of two signs at the end of a line away, within a cell too.
func guarded(column, text string) string {
	guard := sheet.Guard
	if column == "amount" || column == "canceled" || column == "credits" {
		guard = sheet.GuardNumber
	}
	return strings.ReplaceAll(guard(text), "\r\n", "\r\r\n")
}
