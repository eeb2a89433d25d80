package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/tributary-io/tributary/internal/filelock"
)

const (
	idFile   = "instance.id"
	lockFile = "instance.lock"
)

// Identity is a locked identity. Close releases it.
type Identity struct {
	id   uuid.UUID
	lock *filelock.Lock
}

// Open locks dir, making it where there is none, and reads its identity, making one at the first time. Where another process
// has it, the error wraps filelock.ErrHeld.
func Open(dir string) (*Identity, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	lock, err := filelock.TryLock(filepath.Join(dir, lockFile))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("state directory %s is in use by another instance of this application; give each instance a directory of its own: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w", dir, err)
	}
	id, err := load(filepath.Join(dir, idFile))
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return &Identity{id: id, lock: lock}, nil
}

func load(path string) (uuid.UUID, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		id := uuid.New()
		return id, store(path, id)
	}
	if err != nil {
		return uuid.UUID{}, fmt.Errorf("read identity: %w", err)
	}
	id, err := uuid.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return uuid.UUID{}, fmt.Errorf("identity %s: %w; remove the file to get a new identity (the instance then waits for its former session to end)", path, err)
	}
	return id, nil
}

// store writes the identity so that a crash leaves either none or a whole one.
func store(path string, id uuid.UUID) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), idFile+"-")
	if err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	_, err = tmp.WriteString(id.String() + "\n")
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write identity %s: %w", path, errors.Join(err, removeIfThere(tmp.Name())))
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// UUID is the identity itself.
func (i *Identity) UUID() uuid.UUID { return i.id }

// InstanceID is the group.instance.id of static membership (KIP-345). It is unique within the group.
func (i *Identity) InstanceID(applicationID string) string {
	return applicationID + "-" + i.id.String()
}

// TransactionalID names the instance's producer to the transaction coordinator. application is the application's id, and what an option puts in
// front of it.
func (i *Identity) TransactionalID(application string) string {
	return application + "-" + i.id.String()
}

// Close releases the lock.
func (i *Identity) Close() error { return i.lock.Release() }
