// What pages with charts share, in one file for all of them, as kit.ts is for all pages: a page loads one file more and
// not one for each set of pages that has something in common.
import './pages/server/metric-groups.ts'
import './pages/server/series-loader.ts'
import './parts/time-range/time-range.tsx'
