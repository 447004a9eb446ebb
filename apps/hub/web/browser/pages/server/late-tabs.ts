// The tabs of a server that come in a file of their own, when one of them is first opened (late-tab.tsx).
export { PackagesTab } from './packages-tab.tsx'
export { SecurityTab } from './security-tab.tsx'
