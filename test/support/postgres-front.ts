// A PostgreSQL server in a process of its own: prints its URL, and ends on SIGTERM. With TEST_POSTGRES set to that URL
// tests make their databases in it instead of starting one.
import { startTestPostgres } from './postgres.ts'

const server = await startTestPostgres()
console.log(server.url)
process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)))
