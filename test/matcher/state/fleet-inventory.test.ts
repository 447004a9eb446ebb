// The index of which hosts have which packages, while it is loaded in steps and reports come between them.
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { FleetInventory } from '../../../apps/matcher/state/fleet-inventory.ts'
import { encodeSorted } from '../../../apps/matcher/state/number-list.ts'

const HELD = Int32Array.of(1, 2)
const REPORTED = Int32Array.of(2, 3)

function databaseOf(hosts: readonly number[]): Database {
  const database = new Database(':memory:')
  database.run('CREATE TABLE host (id INTEGER PRIMARY KEY, list INTEGER)')
  database.run('CREATE TABLE package_list (id INTEGER PRIMARY KEY, body BLOB)')
  for (const [id, list] of [HELD, REPORTED].entries())
    database.run('INSERT INTO package_list VALUES (?, ?)', [id + 1, encodeSorted(list)])
  for (const host of hosts) database.run('INSERT INTO host VALUES (?, 1)', [host])
  return database
}

/** Hosts by instance, as the index says. */
function hostsOf(inventory: FleetInventory, instance: number): number[] {
  const hosts: number[] = []
  inventory.index.forEach(instance, slot => hosts.push(inventory.hostOf(slot)))
  return hosts.filter(host => host !== 0).sort((a, b) => a - b)
}

/** Loads with a report of the host after so many steps. False when the load has fewer. */
function loadWithReport(steps: number, host: number, heldHosts: readonly number[]): boolean {
  const database = databaseOf(heldHosts)
  const inventory = new FleetInventory(database)
  const load = inventory.load()
  for (let step = 0; step < steps; step++) if (load.next().done === true) return false
  database.run('INSERT INTO host VALUES (?, 2) ON CONFLICT (id) DO UPDATE SET list = 2', [host])
  inventory.replace(host, heldHosts.includes(host) ? HELD : null, REPORTED)
  while (load.next().done !== true);
  const others = heldHosts.filter(held => held !== host)
  const all = [...others, host].sort((a, b) => a - b)
  expect({ steps, 1: hostsOf(inventory, 1), 2: hostsOf(inventory, 2), 3: hostsOf(inventory, 3) }).toEqual({
    steps,
    1: others,
    2: all,
    3: [host],
  })
  return true
}

test.each([
  [5, []],
  [5, [1, 2]],
  [1, [1, 2]],
  [2, [1, 3]],
])('[MAT-182] a report of host %d at any step of the load of hosts %p is in the index', (host, heldHosts) => {
  let steps = 0
  while (loadWithReport(steps, host, heldHosts)) steps++
  expect(steps).toBeGreaterThan(0)
})
