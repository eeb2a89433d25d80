package shop

// What 1,000 orders a day with the seed 42 and the schema ids 1 (order events) and 2 (customers) give for 2026-06-01.
const (
	goldenOrders        = "d5e0bb1e4fef844325ef0ad4322a9898617289f7f4f9e946c53da771004550d3"
	goldenOrderCount    = 3068
	goldenCustomers     = "291cd477d2d1139053abcdef64ae68567c967cca82bf0bbb9310a5e9b9985fb0"
	goldenCustomerCount = 115
)
