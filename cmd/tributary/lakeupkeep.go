package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/lake"
)

func newLakeOptimize() *cobra.Command {
	var (
		opts           lake.OptimizeOptions
		target         string
		where          []string
		asJSON, silent bool
	)
	cmd := &cobra.Command{
		Use:   "optimize TABLE",
		Short: "Compact a table's small files, sorted by a column if wanted",
		Long: "Writes groups of small files of the same partition as one file each. No row changes, streams that read the table see nothing new, and\n" +
			"writers of any make may go on meanwhile. The old files stay for readers of older versions until `tributary lake vacuum` removes them.\n" +
			"It may be interrupted at any time.",
		Example: "  tributary lake optimize s3://lake/raw/shop__orders --where 'day>=2026-01-01' --sort-by event_time",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if target != "" {
				if opts.TargetSize, err = lake.ParseSize(target); err != nil {
					return err
				}
			}
			for _, text := range where {
				c, err := lake.ParseCondition(text)
				if err != nil {
					return err
				}
				opts.Where = append(opts.Where, c)
			}
			if !silent && !asJSON {
				opts.Progress = func(r lake.OptimizeResult) {
					if r.Groups == 0 {
						return // the result says that there is nothing to do
					}
					fmt.Fprintf(cmd.ErrOrStderr(), "%d of %s: %s became %d, %s\n", r.Done, counted(r.Groups, "group"), counted(r.FilesRemoved, "file"), r.FilesAdded, counted(r.Rows, "row"))
				}
			}
			r, err := lake.Optimize(cmd.Context(), args[0], opts)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
			}
			printOptimized(cmd.OutOrStdout(), &r, opts.DryRun)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&target, "target", "", "size of files to aim at, such as 128mb (default: the table's delta.targetFileSize, or 128mb)")
	f.StringVar(&opts.SortBy, "sort-by", "", "column to sort each new file by")
	f.StringArrayVar(&where, "where", nil, "only partitions for which this holds, such as 'day>=2026-01-01'; may be given several times")
	f.IntVar(&opts.Parallel, "parallel", 0, "files written at once (default: one for each core, at most 4)")
	f.BoolVar(&opts.DryRun, "dry-run", false, "only say what would be done")
	f.BoolVar(&asJSON, "json", false, "print JSON, without progress")
	f.BoolVarP(&silent, "quiet", "q", false, "no progress")
	return cmd
}

func printOptimized(out io.Writer, r *lake.OptimizeResult, dry bool) {
	if dry {
		fmt.Fprintf(out, "version %d: %s of %s would become %d, %s\n",
			r.Version, counted(r.FilesRemoved, "file"), counted(r.BytesRemoved, "byte"), r.FilesAdded, counted(r.Rows, "row"))
		return
	}
	fmt.Fprintf(out, "version %d: %s of %s became %d of %s, %s, in %s\n", r.Version, counted(r.FilesRemoved, "file"), counted(r.BytesRemoved, "byte"),
		r.FilesAdded, counted(r.BytesAdded, "byte"), counted(r.Rows, "row"), counted(r.Commits, "commit"))
	if r.Conflicts > 0 {
		fmt.Fprintf(out, "%s dropped because another writer was faster\n", counted(r.Conflicts, "group"))
	}
	for _, l := range r.Left {
		fmt.Fprintf(out, "left as they are: %s: %s\n", counted(len(l.Paths), "file"), l.Reason)
	}
}

func newLakeVacuum() *cobra.Command {
	var (
		opts             lake.VacuumOptions
		remove, list     bool
		asJSON, isSilent bool
	)
	cmd := &cobra.Command{
		Use:   "vacuum TABLE",
		Short: "Delete files that no version of a table needs any more; without --delete only say which",
		Long: "Deletes data files and deletion vectors that the table removed longer ago than the retention, and orphans of writers that crashed. Files that no\n" +
			"version names are spared while they are younger than --in-flight: a batch may be about to name them. Without --delete nothing is deleted.",
		Example: "  tributary lake vacuum s3://lake/raw/shop__orders --list\n  tributary lake vacuum s3://lake/raw/shop__orders --delete",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.DryRun = !remove
			out := cmd.OutOrStdout()
			if list && !asJSON {
				opts.Deleted = func(name string) { fmt.Fprintln(out, name) }
			}
			if !isSilent && !asJSON {
				opts.Progress = func(r lake.VacuumResult) {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s looked at, %d to go\n", counted(r.Listed, "file"), r.Removed+r.Orphans)
				}
			}
			r, err := lake.Vacuum(cmd.Context(), args[0], opts)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(out).Encode(r)
			}
			verb := "deleted"
			if opts.DryRun {
				verb = "would delete"
			}
			fmt.Fprintf(out, "version %d: %s %s, %s, %s, %s; kept %s, and spared %d young ones\n", r.Version, verb, counted(r.Removed, "removed file"),
				counted(r.Orphans, "orphan"), counted(r.Sidecars, "sidecar"), counted(r.Bytes, "byte"), counted(r.Live, "file"), r.Spared)
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&remove, "delete", false, "delete the files; without it this is a dry run")
	f.DurationVar(&opts.Retention, "retention", 0, "how long removed files stay, such as 168h (default: the table's delta.deletedFileRetentionDuration, or a week)")
	f.BoolVar(&opts.Force, "force", false, "allow a shorter retention than the table promises to readers of older versions")
	f.DurationVar(&opts.InFlight, "in-flight", 0, "longest time that a batch may take from its files to its commit (default 24h)")
	f.BoolVar(&list, "list", false, "print the files' names")
	f.BoolVar(&asJSON, "json", false, "print JSON, without progress")
	f.BoolVarP(&isSilent, "quiet", "q", false, "no progress")
	return cmd
}
