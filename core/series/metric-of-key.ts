// Apart from what else is known of keys: pages take this into the browser.

/** The metric of a full key. */
export function metricOf(full: string): string {
  const labelsAt = full.indexOf('{')
  return labelsAt < 0 ? full : full.slice(0, labelsAt)
}
