package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// script is the story as pgbench runs it: the service's own statements, with the names of another payment each time.
type script struct {
	oneByOne  string
	pipelined string
	defines   []string // of the parameters that are the same for every payment, as name=value
	story     story
}

// mark is a text that belongs to the recorded payment, and what stands for it in the script.
type mark struct {
	text   string
	prefix string // what of it is the same for all
	kind   name   // the name that follows
}

// marksOf are the names of payment n in the statements of its cancel.
func marksOf(n int) []mark {
	marks := make([]mark, 0, len(names()))
	for _, k := range names() {
		marks = append(marks, mark{text: k.of(n), kind: k})
	}
	return marks
}

// marksOfEvents are the names of the events that its cancel leads to.
func marksOfEvents(ids []string) []mark {
	marks := make([]mark, 0, len(ids))
	for i, id := range ids {
		marks = append(marks, mark{text: id, prefix: eventPrefix(i + 1), kind: orderName})
	}
	return marks
}

// writer writes a story down as a script.
type writer struct {
	conn    *pgconn.PgConn
	marks   []mark
	defines map[string]string
	types   map[uint32]string
}

// write turns a recorded story into a script.
func write(ctx context.Context, db *pgxpool.Pool, s story, marks []mark) (made script, err error) {
	conn, err := db.Acquire(ctx)
	if err != nil {
		return made, fmt.Errorf("write the script: %w", err)
	}
	defer conn.Release()
	w := &writer{conn: conn.Conn().PgConn(), marks: marks, defines: map[string]string{}, types: map[uint32]string{}}
	var texts []string
	for n, one := range slices.Concat(s.limit.statements, s.store.statements, s.apply.statements) {
		text, err := w.statement(ctx, n, one)
		if err != nil {
			return made, fmt.Errorf("write statement %d of the script: %w: %.80s", n+1, err, one.sql)
		}
		texts = append(texts, text)
	}
	var head strings.Builder
	head.WriteString("\\set n :first + :client_id * :each + :done\n")
	for _, k := range names() {
		fmt.Fprintf(&head, "\\set %s %d + :n\n", k.variable(), int64(k)*spread)
	}
	const tail = "\\set done :done + 1\n"
	alone := len(s.limit.statements) + len(s.store.statements)
	before := strings.Join(texts[:alone-1], ";\n") + ";\n" + texts[alone-1] + " \\gset\n"
	apply := strings.Join(texts[alone:], ";\n") + ";\n"
	made.oneByOne = head.String() + before + apply + tail
	made.pipelined = head.String() + before + "\\startpipeline\n" + apply + "\\endpipeline\n" + tail
	for _, name := range slices.Sorted(maps.Keys(w.defines)) {
		made.defines = append(made.defines, name+"="+w.defines[name])
	}
	made.story = s
	return made, nil
}

var (
	errColon    = errors.New("it has a colon that pgbench would take for a variable")
	comment     = regexp.MustCompile(`(?m)^\s*--.*$`)
	parameter   = regexp.MustCompile(`\$(\d+)`)
	variable    = regexp.MustCompile(`(^|[^:]):[A-Za-z_]`)
	deliveryKey = regexp.MustCompile(`delivery_id = \$(\d+)`)
)

// statement puts variables and names in place of a statement's parameters. A parameter keeps its type wherever it
// stands: pgbench makes each of its places a parameter of its own.
func (w *writer) statement(ctx context.Context, number int, s statement) (string, error) {
	s.sql = comment.ReplaceAllString(s.sql, "")
	if variable.MatchString(s.sql) {
		return "", errColon
	}
	if len(s.values) == 0 {
		return s.sql, nil
	}
	described, err := w.conn.Prepare(ctx, "", s.sql, nil)
	if err != nil {
		return "", err
	}
	delivery := 0
	if found := deliveryKey.FindStringSubmatch(s.sql); found != nil {
		delivery, _ = strconv.Atoi(found[1])
	}
	places := make([]string, len(s.values))
	for i, value := range s.values {
		kind, err := w.typeName(ctx, described.ParamOIDs[i])
		if err != nil {
			return "", err
		}
		text, err := w.text(ctx, described.ParamOIDs[i], value, s.binary[i])
		switch {
		case err != nil:
			return "", err
		case i+1 == delivery:
			places[i] = "(:delivery_id::" + kind + ")"
		case value == nil:
			places[i] = "(NULL::" + kind + ")"
		default:
			places[i] = w.place(fmt.Sprintf("given_%d_%d", number+1, i+1), text, kind)
		}
	}
	return parameter.ReplaceAllStringFunc(s.sql, func(found string) string {
		n, _ := strconv.Atoi(found[1:])
		return places[n-1]
	}), nil
}

// place is what stands for a value in the script.
func (w *writer) place(name, text, kind string) string {
	var parts []string
	for text != "" {
		at, next := -1, mark{}
		for _, m := range w.marks {
			if i := strings.Index(text, m.text); i >= 0 && (at < 0 || i < at) {
				at, next = i, m
			}
		}
		if at < 0 {
			break
		}
		if before := text[:at] + next.prefix; before != "" {
			parts = append(parts, literal(before))
		}
		parts = append(parts, ":"+next.kind.variable()+"::text")
		text = text[at+len(next.text):]
	}
	switch {
	case len(parts) == 0 && text == "": // pgbench takes no empty variable
		return "(''::" + kind + ")"
	case len(parts) == 0:
		w.defines[name] = text
		return "(:" + name + "::" + kind + ")"
	case text != "":
		parts = append(parts, literal(text))
	}
	return "((" + strings.Join(parts, " || ") + ")::" + kind + ")"
}

// literal writes a text for SQL and for pgbench, which sees variables in strings too.
func literal(text string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`, ":", `\072`).Replace(text) + "'"
}

// text is a value as PostgreSQL writes it.
func (w *writer) text(ctx context.Context, oid uint32, value []byte, binary bool) (string, error) {
	if value == nil || !binary {
		return string(value), nil
	}
	result := w.conn.ExecParams(ctx, "SELECT $1", [][]byte{value}, []uint32{oid}, []int16{1}, []int16{0}).Read()
	if result.Err != nil {
		return "", fmt.Errorf("read a parameter: %w", result.Err)
	}
	return string(result.Rows[0][0]), nil
}

func (w *writer) typeName(ctx context.Context, oid uint32) (string, error) {
	if known := w.types[oid]; known != "" {
		return known, nil
	}
	result := w.conn.ExecParams(ctx, "SELECT $1::oid::regtype::text", [][]byte{strconv.AppendUint(nil, uint64(oid), 10)}, nil, nil, nil).Read()
	if result.Err != nil {
		return "", fmt.Errorf("name a type: %w", result.Err)
	}
	w.types[oid] = string(result.Rows[0][0])
	return w.types[oid], nil
}

// byName puts rows in the order of their first cell.
func byName(rows [][]string) [][]string {
	slices.SortFunc(rows, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return rows
}
