package overload

import (
	"fmt"

	"daesa/cmd/lab/harness"
)

// before is our stand-in for a server with a pool of threads, without cap and breaker, that sends a call once.
func before(threads int) harness.Arm {
	return harness.Arm{Name: "before", Settings: []string{
		fmt.Sprint("DAESA_ONE_LINE=", threads), "DAESA_PATH_CONFIRM_CAP=100000", "DAESA_PATH_CONFIRM_ATTEMPTS=1", "DAESA_BREAKERS=false",
	}}
}

// capped is the service with another cap on approvals.
func capped(slots int) harness.Arm {
	return harness.Arm{Name: fmt.Sprint("cap ", slots), Settings: []string{fmt.Sprint("DAESA_PATH_CONFIRM_CAP=", slots)}}
}
