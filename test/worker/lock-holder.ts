// Writes the SQLite file that is its argument, without a write-ahead log, and commits a while after it said `held`.
import { Database } from 'bun:sqlite'

const database = new Database(process.argv[2], { create: true })
database.run('BEGIN IMMEDIATE')
database.run('CREATE TABLE made (a)')
console.log('held')
Bun.sleepSync(200)
database.run('COMMIT')
