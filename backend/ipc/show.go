package ipc

import "context"

// OpShow asks a desktop app to show its window. The app serves it on an endpoint
// of its own; the broker does not know it.
const OpShow = "show"

// Show asks the desktop app at the other end to show its window (DSK-02).
func (c *Client) Show(ctx context.Context) error {
	_, err := call[Empty](ctx, c, OpShow, Empty{})
	return err
}
