// What a page loads, counted as it comes over the wire: headers and body of each answer. The bench and the test of the
// bars count with the same lines, so that they cannot disagree.
import type { CDPSession } from 'playwright-core'

export type Load = {
  readonly path: string
  readonly type: string
  readonly encoding: string | undefined
  readonly bytes: number
}

/** What a browser loads for every page that it has open, not for this one: the icon, and the stream with its worker. */
const OF_THE_BROWSER = /shared-worker|\/web\/live|icon/

/** All that the page of `devtools` loads from now on, without its cache; workers load for themselves. */
export async function countedLoads(devtools: CDPSession): Promise<readonly Load[]> {
  const loads: Load[] = []
  const answered = new Map<string, Omit<Load, 'bytes'>>()
  devtools.on('Network.responseReceived', ({ requestId, response }) => {
    const { pathname, protocol } = new URL(response.url)
    const encoding = Object.entries(response.headers).find(([name]) => name.toLowerCase() === 'content-encoding')?.[1]
    // The browser brings the signs of its own fields along, as addresses that hold what they name.
    if (protocol !== 'data:' && !OF_THE_BROWSER.test(pathname))
      answered.set(requestId, { path: pathname, type: response.mimeType, encoding })
  })
  devtools.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    const load = answered.get(requestId)
    if (load !== undefined) loads.push({ ...load, bytes: encodedDataLength })
  })
  await devtools.send('Network.enable')
  await devtools.send('Network.setCacheDisabled', { cacheDisabled: true })
  return loads
}

/** The bytes of what has a type, as `text/javascript`. */
export const bytesOf = (loads: readonly Load[], type: string): number =>
  loads.filter(load => load.type === type).reduce((sum, { bytes }) => sum + bytes, 0)
