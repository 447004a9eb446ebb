// The embedded engine as a ClickHouse server, in a process of its own: prints its URL, and ends on SIGTERM. With
// CLICKHOUSE_URL set to that URL the tests of the samples store talk to it as they would to any server; with --cluster
// and CLICKHOUSE_CLUSTER=own as to a cluster.
import { startClickHouseServer } from './clickhouse-server.ts'

const server = startClickHouseServer(0, { hasCluster: process.argv.includes('--cluster') })
console.log(server.url)
process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)))
