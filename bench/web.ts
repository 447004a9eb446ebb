// What the web interface costs the browser, the hub and the collector, part by part: `bun bench/web.ts [--only PART,…]
// [--data DIR]`. With --data the seeded databases are kept in DIR and used again. A part is a file of bench/web/ with a
// function that answers with the members of its line. The bars are those of bench/README.md.
import { parseArgs } from 'node:util'
import type { Browser } from 'playwright-core'
import { startBrowser } from '../test/web/browser.ts'
import { benchCharts } from './web/charts.ts'
import { benchInteraction } from './web/interaction.ts'
import { benchMap } from './web/map.ts'
import { benchRows } from './web/rows.ts'
import { benchScreen } from './web/screen.ts'
import { type SeededHub, startSeededHub } from './web/seeded-hub.ts'
import { benchShift } from './web/shift.ts'
import { benchTabs } from './web/tabs.ts'
import { benchViewers } from './web/viewers.ts'

type Part = (browser: Browser, hub: SeededHub) => Promise<object>

/** By how many servers the hub has that they look at. */
const partsOf: Readonly<Record<number, Readonly<Record<string, Part>>>> = {
  10000: {
    viewers: (_, hub) => benchViewers(hub),
    screen: benchScreen,
    interaction: benchInteraction,
    map: benchMap,
    tabs: benchTabs,
    shift: benchShift,
  },
  100000: { rows: benchRows, map: benchMap },
}

const { values: options } = parseArgs({ options: { only: { type: 'string' }, data: { type: 'string' } } })
const isWanted = (part: string): boolean => options.only === undefined || options.only.split(',').includes(part)
const say = (part: string, figures: object): void => console.log(JSON.stringify({ bench: `web-${part}`, ...figures }))

const browser = await startBrowser()
try {
  if (isWanted('charts')) say('charts', await benchCharts(browser))
  for (const [servers, parts] of Object.entries(partsOf)) {
    const wanted = Object.entries(parts).filter(([part]) => isWanted(part))
    if (wanted.length === 0) continue
    const hub = await startSeededHub(Number(servers), options.data ?? null)
    try {
      for (const [part, run] of wanted) say(part, { servers: Number(servers), ...(await run(browser, hub)) })
    } finally {
      await hub.stop()
    }
  }
} finally {
  await browser.close()
}
