package topology

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Every operator is compiled where it is called: a plain method of a generic type that makes operators would be compiled, with all
// that it uses, for each pair of types of a user's topology.
func TestOperatorsAreCompiledOnUse(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	operators := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() || !genericReceiver(f.Recv.List[0].Type) {
				continue
			}
			if f.Type.TypeParams != nil {
				operators++
			} else if f.Type.Params.NumFields() > 0 {
				t.Errorf("%s is a plain method of a generic type: give it the type parameter [_ onUse]", f.Name.Name)
			}
		}
	}
	if operators < 100 {
		t.Errorf("found %d operators: this test looks at the wrong files", operators)
	}
}

func genericReceiver(e ast.Expr) bool {
	if p, ok := e.(*ast.StarExpr); ok {
		e = p.X
	}
	switch e.(type) {
	case *ast.IndexExpr, *ast.IndexListExpr:
		return true
	}
	return false
}
