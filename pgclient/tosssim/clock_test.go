package tosssim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

func TestManualClock(t *testing.T) {
	t.Parallel()
	clock := tosssim.NewManualClock(base())
	select {
	case <-clock.After(0):
	default:
		t.Error("no time is not at once")
	}
	due := clock.After(time.Minute)
	clock.Advance(59 * time.Second)
	select {
	case <-due:
		t.Error("too early")
	default:
	}
	clock.Set(base().Add(time.Minute))
	if at := <-due; !at.Equal(clock.Now()) {
		t.Errorf("woken at %s", at)
	}
}

func TestAcceleratedClock(t *testing.T) {
	t.Parallel()
	clock := tosssim.Accelerated(base(), 1e6)
	<-clock.After(time.Hour) // 3.6 ms.
	if passed := clock.Now().Sub(base()); passed < time.Hour {
		t.Errorf("%s passed", passed)
	}
	real := tosssim.RealClock()
	<-real.After(time.Millisecond)
	if time.Since(real.Now()) > time.Minute {
		t.Error("the real clock is off")
	}
}

func TestNonsensePanics(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(){
		"security key": func() { tosssim.New(tosssim.Config{SecurityKey: "short"}) },
		"merchant id":  func() { tosssim.New(tosssim.Config{MerchantID: strings.Repeat("m", 15)}) },
		"sign":         func() { tosssim.New(tosssim.Config{CancelRowSign: 2}) },
		"secret key":   func() { tosssim.New(tosssim.Config{SecretKey: "a:b"}) },
		"lag":          func() { tosssim.New(tosssim.Config{ListLag: -1}) },
		"factor":       func() { tosssim.Accelerated(base(), 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			act()
		}()
	}
}

func TestAmountsOfForeignCurrencies(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	for minor, want := range map[int64]string{72_624: "726.24", 4150: "41.5", 100: "1.0", 5: "0.05"} {
		key := s.Authenticate(tosssim.Checkout{OrderID: "order-" + want, Amount: minor, Currency: "USD", Method: tosssim.EasyPay})
		if out := s.confirm(key, "order-"+want, want); out.status != http.StatusOK || out.number("totalAmount") != want {
			t.Errorf("%d: %d %s", minor, out.status, out.body)
		}
	}
	yen := s.Authenticate(tosssim.Checkout{OrderID: "order-yen", Amount: 1100, Currency: "JPY", Method: tosssim.EasyPay})
	wantFields(t, s.confirm(yen, "order-yen", "1100").body, map[string]string{"totalAmount": "1100", "vat": "0"})
}
