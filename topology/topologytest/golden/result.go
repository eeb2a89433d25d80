package golden

// Result is what a run gave, in the form of a scenario's expect part: sections by name.
type Result map[string]any

// Error kinds of the format. kindOther is what no other kind describes.
const (
	kindTopology         = "topology"
	kindInvalidArgument  = "invalidArgument"
	kindUserFunction     = "userFunction"
	kindDeserialization  = "deserialization"
	kindSerialization    = "serialization"
	kindInvalidTimestamp = "invalidTimestamp"
	kindBufferFull       = "bufferFull"
	kindUnknownChild     = "unknownChild"
	kindStoreAccess      = "storeAccess"
	kindOther            = "other"
)
