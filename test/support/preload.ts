// Loaded before the test files of a process (bunfig.toml). On its own, for a bench that uses a browser runs no tests.
import { afterAll } from 'bun:test'
import { endShared } from './at-end.ts'

afterAll(endShared, 60_000)
