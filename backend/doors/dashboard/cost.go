package dashboard

import (
	"net/http"

	"bridge/backend/core/session"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/ipc/api"
)

// costs answers GET /api/cost: what Bridge put into each session, as an estimate in tokens
// (CTX-03). Without a broker it knows no session.
func (s *states) costs(w http.ResponseWriter, _ *http.Request) error {
	costs := api.Costs{BytesPerToken: session.BytesPerToken}
	if s.broker != nil {
		costs = s.broker.Costs()
	}
	return httpjson.WriteJSON(w, dto.Costs{
		BytesPerToken: costs.BytesPerToken, KeptDays: costs.KeptDays,
		Sessions: dto.Each(costs.Sessions, func(cost api.SessionCost) dto.SessionCost {
			return dto.SessionCost{
				ID: cost.ID, Name: cost.Name, Agent: cost.Agent, Total: tokensOf(cost.Total),
				Days: dto.Each(cost.Days, func(day api.DayTokens) dto.DayCost { return dto.DayCost{Day: day.Day, Tokens: tokensOf(day.Cost)} }),
			}
		}),
	})
}

func tokensOf(cost session.Cost) dto.Tokens {
	return dto.Tokens{Tools: cost.Tools, Notes: cost.Notes, Mail: cost.Mail, Notices: cost.Notices, Total: cost.Total()}
}
