package tosssim

import (
	"errors"
	"slices"
	"time"
)

// gatewayMode is how the gateway answers from now on, as the page offers it.
type gatewayMode string

const (
	gatewayNormal    gatewayMode = "normal"
	gatewaySilent    gatewayMode = "silent"
	gatewaySlow      gatewayMode = "slow"
	gatewayLostReply gatewayMode = "lost_reply"
	gatewayScripted  gatewayMode = "scripted" // By a test or by the control API; the page does not offer it.
)

// noticeMode is how the gateway sends its notices from now on.
type noticeMode string

const (
	noticesNormal   noticeMode = "normal"
	noticesTwice    noticeMode = "twice"
	noticesHeld     noticeMode = "held"
	noticesLost     noticeMode = "lost"
	noticesScripted noticeMode = "scripted"
)

// pageSlowness is late enough to be felt and early enough for every time-out of a patient client.
const pageSlowness = 1500 * time.Millisecond

var (
	errPageMode   = errors.New("tosssim: there is no such way to behave")
	errPageAmount = errors.New("tosssim: the amount is not one of the payment's currency")
	errPageReason = errors.New("tosssim: a cancel needs a reason of at most 200 bytes")
)

func gatewayModes() []gatewayMode {
	return []gatewayMode{gatewayNormal, gatewaySilent, gatewaySlow, gatewayLostReply}
}

func noticeModes() []noticeMode {
	return []noticeMode{noticesNormal, noticesTwice, noticesHeld, noticesLost}
}

// script is what a mode does to every call.
func (m gatewayMode) script() []Fault {
	fault := Fault{N: -1}
	ops := []Op{Confirm, Cancel, Get, List}
	switch m {
	case gatewaySilent:
		fault.Kind = Hang
	case gatewaySlow:
		fault.Kind, fault.Delay = Delay, pageSlowness
	case gatewayLostReply:
		fault.Kind, ops = LostReply, []Op{Confirm, Cancel}
	case gatewayNormal, gatewayScripted:
		return nil
	}
	faults := make([]Fault, 0, len(ops))
	for _, op := range ops {
		fault.Op = op
		faults = append(faults, fault)
	}
	return faults
}

func (s *Sim) setGateway(mode gatewayMode) error {
	if !slices.Contains(gatewayModes(), mode) {
		return errPageMode
	}
	s.Heal()
	for _, fault := range mode.script() {
		s.Fail(fault)
	}
	return nil
}

func (s *Sim) setNotices(mode noticeMode) error {
	switch mode {
	case noticesNormal:
		s.SetDelivery(DeliveryPlan{})
	case noticesTwice:
		s.SetDelivery(DeliveryPlan{Duplicate: 1})
	case noticesHeld:
		s.SetDelivery(DeliveryPlan{Hold: true})
	case noticesLost:
		s.SetDelivery(DeliveryPlan{LoseIf: func(Notice) bool { return true }})
	case noticesScripted:
		return errPageMode
	default:
		return errPageMode
	}
	return nil
}

// gatewayNow is the mode that the faults in force amount to.
func (s *Sim) gatewayNow() gatewayMode {
	left := slices.DeleteFunc(slices.Clone(s.faults), func(f *Fault) bool { return f.N == 0 })
	for _, mode := range gatewayModes() {
		same := slices.EqualFunc(left, mode.script(), func(a *Fault, b Fault) bool {
			return a.Op == b.Op && a.Kind == b.Kind && a.N == b.N && a.Delay == b.Delay && a.PaymentKey == b.PaymentKey
		})
		if same {
			return mode
		}
	}
	return gatewayScripted
}

// noticesNow is the mode that the plan of deliveries amounts to.
func (s *Sim) noticesNow() noticeMode {
	plan := s.plan
	rest := plan.HoldTime == 0 && plan.Lose == 0 && plan.Shuffle == 0 && !plan.FreshIDs && plan.Parallel == 0
	switch {
	case !rest:
	case plan.LoseIf != nil && !plan.Hold && plan.Duplicate == 0:
		return noticesLost
	case plan.LoseIf != nil:
	case plan.Hold && plan.Duplicate == 0:
		return noticesHeld
	case plan.Duplicate == 1 && !plan.Hold:
		return noticesTwice
	case plan.Duplicate == 0 && !plan.Hold:
		return noticesNormal
	}
	return noticesScripted
}
