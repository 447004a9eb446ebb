// Special builds, by the mark that their versions have (MAT-118): rules of one concern no other.

/** `fips`, `ksplice` or `realtime`; undefined for an ordinary build. */
export function flavourOfVersion(version: string): string | undefined {
  if (/fips/i.test(version)) return 'fips'
  if (version.includes('.ksplice')) return 'ksplice'
  return version.includes('realtime') ? 'realtime' : undefined
}
