package processors

import "errors"

var errUnbuilt = errors.New("this operator is declared, but not in this build")

func unbuilt() Supplier {
	return SupplierFunc(func(Runtime, []Child) (Instance, error) { return Instance{}, errUnbuilt })
}

type unbuiltTable[K, V any] struct{ Supplier }

func (unbuiltTable[K, V]) EnableOldValues(bool) bool { return false }
func (unbuiltTable[K, V]) View() ViewSupplier[K, V]  { return nil }
