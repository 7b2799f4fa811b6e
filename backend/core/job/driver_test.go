package job

import "testing"

// Usage limits, refusals and a wrong account stay as they are however often one
// asks; what the provider or the way to it did wrong may be over soon.
func TestJOB_16_OnlyTheProvidersOwnFailuresAreTriedAgain(t *testing.T) {
	want := map[EndReason]bool{
		EndAnswer: false, EndEmpty: false, EndRefusal: false, EndLimit: false, EndContext: false, EndLength: false, EndAuth: false,
		EndOverload: true, EndProvider: true, EndNetwork: true,
		EndInterrupted: false, EndDenied: false, EndNoSession: false, EndInUse: false, EndLost: false, EndFailed: false,
	}
	for reason, transient := range want {
		if got := reason.IsTransient(); got != transient {
			t.Errorf("%s.IsTransient() = %v, want %v", reason, got, transient)
		}
	}
}
