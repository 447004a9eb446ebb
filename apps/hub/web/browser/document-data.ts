// What the hub wrote into the document for the script.
import type { DocumentData } from '../shell/document.ts'

function documentData(): DocumentData {
  const block = document.getElementById('data')
  if (block === null) throw new Error('the document has no data')
  return JSON.parse(block.textContent ?? '')
}

export const data = documentData()
