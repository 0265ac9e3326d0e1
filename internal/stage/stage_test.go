package stage_test

import (
	"log/slog"
	"net/http"
	"testing"

	"daesa/internal/app"
	"daesa/internal/postgres/postgrestest"
	"daesa/internal/stage"
	"daesa/ledger/ledgertest"
)

func TestMain(m *testing.M) { postgrestest.Run(m) }

// TestSet_SellsAndCancels: everything that the stage sets up knows each other, and nothing is left when it closes.
func TestSet_SellsAndCancels(t *testing.T) {
	t.Parallel()
	s, err := stage.Set(t.Context(), stage.Config{
		DatabaseURL: postgrestest.NewURL(t), Service: app.Config{Lazy: true}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	key, err := s.Sell(t.Context(), stage.Sale{OrderID: "order-1", Won: 10_000, Customer: "customer", Credits: 10})
	if err != nil {
		t.Fatal(err)
	}
	if credits, err := s.Shop.Credits(t.Context(), "customer"); err != nil || credits != 10 {
		t.Errorf("got %d credits after the sale, want 10 (%v)", credits, err)
	}
	if reply, err := s.Shop.Cancel(t.Context(), key, 4_000); err != nil || reply.HTTP != http.StatusOK {
		t.Errorf("got %+v for our own cancel: %v", reply, err)
	}
	if _, err := s.Sim.CancelInDashboard(key, 0, "고객 변심"); err != nil {
		t.Fatal(err)
	}
	notices := s.Sim.Notices()
	if status, err := s.Sim.Deliver(notices[len(notices)-1].ID); err != nil || status != http.StatusOK {
		t.Errorf("got %d for the notice: %v", status, err)
	}
	if status, err := s.Shop.Status(t.Context(), "order-1"); err != nil || status != "canceled" {
		t.Errorf("got an order %q, want canceled (%v)", status, err)
	}
	if credits, err := s.Shop.Credits(t.Context(), "customer"); err != nil || credits != 0 {
		t.Errorf("got %d credits after the cancel, want 0 (%v)", credits, err)
	}
	ledgertest.RequireSound(t, s.App.DB())
}

// TestSet_RefusesWhatOthersCanReach: whoever reaches the simulator may move its money.
func TestSet_RefusesWhatOthersCanReach(t *testing.T) {
	t.Parallel()
	_, err := stage.Set(t.Context(), stage.Config{
		DatabaseURL: "postgres://nowhere", GatewayListen: "0.0.0.0:0", Log: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		t.Fatal("a gateway on every interface was accepted")
	}
}

// TestFreeNear_StepsAside: a taken port is no reason not to start.
func TestFreeNear_StepsAside(t *testing.T) {
	t.Parallel()
	if got := stage.FreeNear(t.Context(), "127.0.0.1:0"); got != "127.0.0.1:0" {
		t.Errorf("got %s", got)
	}
	if got := stage.FreeNear(t.Context(), "127.0.0.1:99999"); got != "127.0.0.1:0" {
		t.Errorf("got %s for an impossible port", got)
	}
}
