-- The built-in viewer holds every key that only reads, and the operator everything that the viewer holds.
update roles set permissions = permissions || array['security.secrets.view', 'security.pii.view', 'system.settings.view']
  where built_in and name in ('viewer', 'operator');
