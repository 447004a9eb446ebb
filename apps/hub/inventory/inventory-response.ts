// The inventory of a server as the API answers it (decision G-113).
import { Type } from '@sinclair/typebox'
import { oneOf } from '../platform/http/request-schema.ts'
import { anyObject, listed, named, string, time } from '../platform/http/response-schema.ts'
import { serverOrigins } from '../servers/server-response.ts'
import { inventoryFields } from './differences.ts'

const shown = Type.Union([Type.String(), Type.Number(), Type.Null()])

export const inventoryResponse = named('Inventory', {
  facts: anyObject(),
  facts_hash: string(),
  reported_at: time(),
  differences: listed(
    Type.Object({
      field: oneOf(inventoryFields),
      server_value: shown,
      inventory_value: Type.Union([shown, listed(string())]),
    }),
  ),
  origin: oneOf(serverOrigins),
})
