// The version of the product, from the one place that has it.
import manifest from '../../package.json'

export const productVersion: string = manifest.version
