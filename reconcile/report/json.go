package report

import (
	"bufio"
	"encoding/json"
	"io"
	"time"

	"daesa/ledger"
)

// writeJSON writes one object: the report's name, its facts, and its tables with columns and rows. Amounts are minor
// units beside their currency, moments RFC 3339 in UTC. Texts are as they are: nothing reads JSON as a formula.
func writeJSON(w io.Writer, r Report) error {
	out := bufio.NewWriter(w)
	j := jsonWriter{out: out}
	j.raw(`{"report":`)
	j.value(r.Name)
	for _, f := range r.Facts {
		j.raw(`,"`, f.Name, `":`)
		j.cell(f.Value)
	}
	j.raw(`,"tables":[`)
	for i, t := range r.Tables {
		if i > 0 {
			j.raw(`,`)
		}
		if err := j.table(t); err != nil {
			return err
		}
	}
	j.raw("\n]}\n")
	if j.err != nil {
		return j.err
	}
	return out.Flush()
}

// jsonWriter keeps the first error and writes nothing after it.
type jsonWriter struct {
	out *bufio.Writer
	err error
}

func (j *jsonWriter) table(t Table) error {
	j.raw("\n{\"name\":")
	j.value(t.Name)
	j.raw(`,"columns":[`)
	for i, c := range t.Columns {
		if i > 0 {
			j.raw(`,`)
		}
		j.raw(`{"name":"`, c.Name, `","type":"`, string(c.Type), `"}`)
	}
	j.raw(`],"rows":[`)
	between := "\n"
	err := t.each(func(row Row) error {
		j.raw(between)
		between = ",\n"
		for i, c := range row {
			j.raw(map[bool]string{true: `{"`, false: `,"`}[i == 0], t.Columns[i].Name, `":`)
			j.cell(c)
		}
		j.raw(`}`)
		return j.err
	})
	j.raw(`]}`)
	return err
}

func (j *jsonWriter) cell(c Cell) {
	switch v := c.(type) {
	case nil:
		j.raw(`null`)
	case Text:
		j.value(string(v))
	case Sentences:
		j.value(v.Text)
	case Word:
		j.value(string(v))
	case Money:
		j.value(v.Minor)
	case Count:
		j.value(int64(v))
	case Instant:
		j.value(time.Time(v).UTC().Format(time.RFC3339Nano))
	case Day:
		j.value(ledger.Day(v))
	}
}

func (j *jsonWriter) value(v any) {
	encoded, err := json.Marshal(v)
	if j.err == nil {
		j.err = err
	}
	j.raw(string(encoded))
}

func (j *jsonWriter) raw(parts ...string) {
	for _, p := range parts {
		if j.err == nil {
			_, j.err = j.out.WriteString(p)
		}
	}
}
