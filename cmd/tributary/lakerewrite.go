package main

import (
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/lake"
)

func newLakeRewrite() *cobra.Command {
	var (
		schema, prefix string
		execute        bool
	)
	cmd := &cobra.Command{
		Use:   "rewrite TABLE",
		Short: "Drop comments and tags from a table's columns that a declared schema doesn't have any more",
		Long: "Makes the metadata of the columns that an Avro schema declares what it says: comments (doc) and tags (attributes) that are not in it go, and changed ones\n" +
			"are published. Columns that it doesn't declare stay as they are, and a column that the table lacks is added. With --drop-properties table properties with a\n" +
			"prefix go, too. It prints what would go, and with --execute does it, in one commit of metadata alone. Sinks may run meanwhile. For streams of\n" +
			"`tributary land` use `tributary land rewrite`, which knows their properties.",
		Example: "  tributary lake rewrite /data/lake/raw/shop__orders --schema orders.avsc\n  tributary lake rewrite s3://lake/raw/shop__orders --schema orders.avsc --execute",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := os.ReadFile(schema)
			if err != nil {
				return fmt.Errorf("schema: %w", err)
			}
			table := lake.Delta(args[0], lake.AvroValue(string(text), nil))
			bytes := reflect.TypeFor[[]byte]()
			if err := table.Bind(bytes, bytes); err != nil {
				return err
			}
			r, err := lake.Rewrite(cmd.Context(), table, lake.RewriteOptions{Properties: prefix, Execute: execute})
			if err != nil {
				return err
			}
			printRewritten(cmd.OutOrStdout(), args[0], r)
			if !execute {
				fmt.Fprintln(cmd.OutOrStdout(), nothingChanged)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&schema, "schema", "", "file with the Avro schema that declares the columns")
	f.StringVar(&prefix, "drop-properties", "", "drop the table properties that begin so, such as ods.")
	f.BoolVar(&execute, "execute", false, "do it, instead of saying what it would do")
	if err := cmd.MarkFlagRequired("schema"); err != nil {
		panic(err) // the flag is there
	}
	return cmd
}

const nothingChanged = "Nothing was changed: give --execute to do it."

// printRewritten lists what a rewrite drops.
func printRewritten(out io.Writer, place string, r *lake.Rewritten) {
	for _, tag := range r.Tags {
		fmt.Fprintf(out, "%s: drop %s\n", place, tag)
	}
	for _, name := range r.Properties {
		fmt.Fprintf(out, "%s: drop the property %s\n", place, name)
	}
	if len(r.Tags)+len(r.Properties) == 0 {
		fmt.Fprintf(out, "%s: it has nothing that isn't declared\n", place)
	}
}
