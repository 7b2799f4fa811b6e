# Short names for `go run ./build <task>`, which works without make, too.
TASKS := run test bench demo lint cross desktop package clis page

.PHONY: $(TASKS)
$(TASKS):
	@go run ./build $@
