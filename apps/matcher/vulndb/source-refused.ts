/** Why a source or a bundle is not taken: said to the operator as it stands, so without paths and content of others. */
export class SourceRefused extends Error {}
