package dashboard

import (
	"fmt"
	"reflect"
	"testing"

	"bridge/backend/agent/connect"
	"bridge/backend/core/proof"
	"bridge/backend/doors/dashboard/storage"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
)

// TestAnAnswerLeavesNothingOut fills what the local link, maintenance and the agent
// CLIs say with something in every member: each member of the answer made of it then
// says something, too.
func TestAnAnswerLeavesNothingOut(t *testing.T) {
	for _, answer := range []any{
		peerShape(filled[api.Peer]()),
		recipientShape(filled[api.Recipient]()),
		agentShape(filled[connect.Agent](), []proof.Summary{filled[proof.Summary]()}),
		storage.DrillShape(filled[inventory.TestResult]()),
		storage.ReportShape(filled[check.Report]()),
	} {
		for _, name := range empty(reflect.ValueOf(answer), fmt.Sprintf("%T", answer)) {
			t.Errorf("%s is left out", name)
		}
	}
}

// filled is a T in which every member is set.
func filled[T any]() T {
	var value T
	fillIn(reflect.ValueOf(&value).Elem())
	return value
}

func fillIn(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillIn(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fillIn(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillIn(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	default:
		panic("no such member was there before: " + v.Type().String())
	}
}

// empty lists the members of v that say nothing.
func empty(v reflect.Value, name string) (names []string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			names = append(names, empty(v.Field(i), name+"."+v.Type().Field(i).Name)...)
		}
	case reflect.Slice:
		if v.Len() == 0 {
			return []string{name}
		}
		names = empty(v.Index(0), name+"[0]")
	default:
		if v.IsZero() {
			names = []string{name}
		}
	}
	return names
}
