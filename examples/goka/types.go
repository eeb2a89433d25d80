package loyalty

import "encoding/json"

// Purchase is what somebody has bought.
type Purchase struct {
	ID    string `json:"id"`
	Cents int64  `json:"cents"`
}

// Customer is a row of the customers' table.
type Customer struct {
	Tier      string `json:"tier"`
	BroughtBy string `json:"brought_by,omitempty"`
}

// Bonus is sent round the loop to the customer who has brought another one in.
type Bonus struct {
	Points int64 `json:"points"`
}

// Account is a row of the group's table.
type Account struct {
	Points     int64 `json:"points"`
	Purchases  int64 `json:"purchases"`
	Statements int64 `json:"statements,omitempty"`
}

// Reward is a customer's nth reward, or a statement.
type Reward struct {
	Number    int64  `json:"number,omitempty"`
	Statement string `json:"statement,omitempty"`
	Points    int64  `json:"points,omitempty"`
}

// JSON is a goka.Codec of values of type T.
type JSON[T any] struct{}

// Encode implements goka.Codec.
func (JSON[T]) Encode(value any) ([]byte, error) { return json.Marshal(value.(T)) }

// Decode implements goka.Codec.
func (JSON[T]) Decode(data []byte) (any, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return v, err
}
