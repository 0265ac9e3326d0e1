package reconcile

// The lines of captures, which add up to those that the gateway lists. What breaks of them, and what a person accepted
// beside the sum, is on the same two lines as of cancels.
const (
	LineCapturesBooked   LineName = "captures_booked"   // in both books
	LineCapturesPending  LineName = "captures_pending"  // being asked about
	LineCapturesAccepted LineName = "captures_accepted" // a person accepted that our books have it otherwise or not at all
	LineCapturesMissing  LineName = "captures_missing"  // must be nothing
)

// CaptureLineNames lists the lines of captures, in their order.
func CaptureLineNames() []LineName {
	return []LineName{LineCapturesBooked, LineCapturesPending, LineCapturesAccepted, LineCapturesMissing}
}

// of is the line on which a transaction of a movement stands that was judged to be on l. Both are judged by the same words.
func (l LineName) of(m Movement) LineName {
	switch {
	case m != MovementCapture:
		return l
	case l == LineApplied:
		return LineCapturesBooked
	case l.pending():
		return LineCapturesPending
	case l == LineAccepted:
		return LineCapturesAccepted
	case l == LineUnexplained:
		return LineCapturesMissing
	}
	return l
}

// Line is the figure of a line of captures; of any other it is zero.
func (c Captures) Line(name LineName) Figure {
	switch name { //nolint:exhaustive // the lines of cancels are the statement's
	case LineCapturesBooked:
		return c.Booked
	case LineCapturesPending:
		return c.Pending
	case LineCapturesAccepted:
		return c.Accepted
	case LineCapturesMissing:
		return c.Missing
	}
	return Figure{}
}
