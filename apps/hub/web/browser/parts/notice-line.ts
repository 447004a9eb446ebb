// One line that says what has just been done, read out to who does not see it; gone with the next act.
import { signal } from '@preact/signals'

export const noticeLine = signal('')
