// REST: /subnets (group "Subnets").
import type { Route } from '../platform/http/route.ts'
import { usualRoutes } from '../resources/kind-routes.ts'
import { subnetKind } from './subnet.ts'

export const networkRoutes: readonly Route[] = [...usualRoutes(subnetKind)]
