// Every text that the API shows to people, in English and Vietnamese. Keys, enum values and codes are never translated.

export const languages = ['en', 'vi'] as const
export type Language = (typeof languages)[number]

const texts = {
  unauthenticated: { en: 'A valid bearer token is required.', vi: 'Cần có bearer token hợp lệ.' },
  token_expired: { en: 'The token has expired.', vi: 'Token đã hết hạn.' },
  token_revoked: { en: 'The token was revoked.', vi: 'Token đã bị thu hồi.' },
  csrf: { en: 'The X-CSRF-Token header is missing or wrong.', vi: 'Thiếu hoặc sai header X-CSRF-Token.' },
  ip_not_allowed: {
    en: 'This token may not be used from this address.',
    vi: 'Không được dùng token này từ địa chỉ IP này.',
  },
  ip_ranges_needed: {
    en: 'A token of a security matcher needs an allowlist of addresses.',
    vi: 'Token của security matcher cần có danh sách địa chỉ IP được phép.',
  },
  company_not_allowed: {
    en: 'This company is outside the scope of the token.',
    vi: 'Công ty này nằm ngoài phạm vi của token.',
  },
  permission_denied: { en: 'The permission {permission} is needed.', vi: 'Cần có quyền {permission}.' },
  may_do_more: {
    en: 'This concerns more permissions than you hold: {permission} is needed.',
    vi: 'Thao tác này liên quan đến nhiều quyền hơn bạn có: cần có quyền {permission}.',
  },
  super_admin_only: {
    en: 'Only super administrators may do this.',
    vi: 'Chỉ quản trị viên cấp cao mới được thực hiện.',
  },
  rate_limited: {
    en: 'Too many requests. Try again in {seconds} seconds.',
    vi: 'Quá nhiều yêu cầu. Hãy thử lại sau {seconds} giây.',
  },
  not_found: { en: 'Not found.', vi: 'Không tìm thấy.' },
  method_not_allowed: { en: 'This method is not supported here.', vi: 'Phương thức này không được hỗ trợ.' },
  not_acceptable: { en: 'The API answers application/json only.', vi: 'API chỉ trả về application/json.' },
  unsupported_type: { en: 'The body must be application/json.', vi: 'Nội dung phải là application/json.' },
  too_large: { en: 'The body is larger than {limit} bytes.', vi: 'Nội dung lớn hơn {limit} byte.' },
  inflate: {
    en: 'must be whole and compressed with gzip or zstd, or not at all',
    vi: 'phải nguyên vẹn và nén bằng gzip hoặc zstd, hoặc không nén',
  },
  too_deep: { en: 'The body is nested more than {max} levels deep.', vi: 'Nội dung lồng nhau quá {max} cấp.' },
  invalid: { en: 'The data are not valid.', vi: 'Dữ liệu không hợp lệ.' },
  server_error: { en: 'An unexpected error happened.', vi: 'Đã xảy ra lỗi không mong muốn.' },
  unavailable: { en: 'The service is not available at the moment.', vi: 'Dịch vụ tạm thời không khả dụng.' },

  no_nul: { en: 'must not hold the character NUL', vi: 'không được chứa ký tự NUL' },
  json: { en: 'must be valid JSON', vi: 'phải là JSON hợp lệ' },
  utf8: { en: 'must be UTF-8 text', vi: 'phải là văn bản UTF-8' },
  object: { en: 'must be an object', vi: 'phải là một đối tượng' },
  required: { en: 'is required', vi: 'là bắt buộc' },
  string: { en: 'must be text', vi: 'phải là chuỗi ký tự' },
  integer: { en: 'must be a whole number', vi: 'phải là số nguyên' },
  number: { en: 'must be a number', vi: 'phải là số' },
  boolean: { en: 'must be true or false', vi: 'phải là true hoặc false' },
  list: { en: 'must be a list', vi: 'phải là một danh sách' },
  list_min: { en: 'must have at least {min} items', vi: 'phải có ít nhất {min} phần tử' },
  list_max: { en: 'must have at most {max} items', vi: 'chỉ được có tối đa {max} phần tử' },
  length_min: { en: 'must have at least {min} characters', vi: 'phải có ít nhất {min} ký tự' },
  length_max: { en: 'must have at most {max} characters', vi: 'chỉ được có tối đa {max} ký tự' },
  minimum: { en: 'must be at least {min}', vi: 'phải lớn hơn hoặc bằng {min}' },
  maximum: { en: 'must be at most {max}', vi: 'phải nhỏ hơn hoặc bằng {max}' },
  above: { en: 'must be greater than {min}', vi: 'phải lớn hơn {min}' },
  one_of: { en: 'must be one of {values}', vi: 'phải là một trong {values}' },
  uuid: { en: 'must be a UUID', vi: 'phải là UUID' },
  instant: { en: 'must be a time such as 2026-01-31T12:00:00Z', vi: 'phải là thời điểm dạng 2026-01-31T12:00:00Z' },
  email: { en: 'must be an e-mail address', vi: 'phải là địa chỉ e-mail' },
  url: { en: 'must be a URL', vi: 'phải là URL' },
  clock: { en: 'must be a time as HH:MM, such as 07:30', vi: 'phải là giờ dạng HH:MM, ví dụ 07:30' },
  time_zone: { en: 'must be a time zone such as Europe/Berlin', vi: 'phải là múi giờ, ví dụ Asia/Ho_Chi_Minh' },
  pattern: { en: 'does not have the expected form', vi: 'không đúng định dạng' },
  unexpected: { en: 'is not allowed here', vi: 'không được phép ở đây' },
  future: { en: 'must be in the future', vi: 'phải ở tương lai' },
  range_order: { en: 'must not come before the first one', vi: 'không được đứng trước giá trị đầu' },
  after_start: { en: 'must be after the start', vi: 'phải sau thời điểm bắt đầu' },
  at_most_days: { en: 'must be at most {days} days', vi: 'tối đa {days} ngày' },
  unknown_reference: { en: 'does not exist in this company', vi: 'không tồn tại trong công ty này' },
  taken: { en: 'is already taken', vi: 'đã được sử dụng' },
  referred_to: {
    en: 'It is in use (named by {count}).',
    vi: 'Đang được sử dụng: có {count} đối tượng khác tham chiếu đến.',
  },
  cidr: {
    en: 'must be an IPv4 or IPv6 block such as 10.0.0.0/24',
    vi: 'phải là một dải IPv4 hoặc IPv6 như 10.0.0.0/24',
  },
  host_bits: { en: 'has host bits: the block is {cidr}', vi: 'có bit host: dải đúng là {cidr}' },
  ip_address: { en: 'must be an IPv4 or IPv6 address', vi: 'phải là địa chỉ IPv4 hoặc IPv6' },
  option_one_default: { en: 'only one item is the default', vi: 'chỉ một mục là mặc định' },
  option_used: { en: 'is used {count} times', vi: 'đang được sử dụng {count} lần' },
  option_unknown: {
    en: 'must be an item of the option list {list}, which is strict',
    vi: 'phải là một mục của danh sách {list} (danh sách nghiêm ngặt)',
  },
  every_item_once: { en: 'must have every item of the list once', vi: 'phải có mỗi mục của danh sách đúng một lần' },
  leaves_outside: { en: 'would leave addresses or subnets outside', vi: 'sẽ để địa chỉ hoặc mạng con nằm ngoài' },
  mac: { en: 'must be a MAC address such as 00:16:3e:00:00:01', vi: 'phải là địa chỉ MAC như 00:16:3e:00:00:01' },
  no_free_address: { en: 'has no free address', vi: 'không còn địa chỉ trống' },
  gives_no_addresses: { en: 'is a container, which gives out no addresses', vi: 'là container, không cấp địa chỉ' },
  address_taken: { en: 'is not free', vi: 'không còn trống' },
  other_parts: { en: 'other blocks lie in it', vi: 'đã có các dải khác nằm trong đó' },
  not_one_block: {
    en: 'must be together exactly one block of one address space and kind',
    vi: 'phải hợp lại thành đúng một dải cùng vrf và loại',
  },
  prefix_range: { en: 'must be from {min} to {max}', vi: 'phải từ {min} đến {max}' },
  outside_block: { en: 'must lie in {cidr}', vi: 'phải nằm trong {cidr}' },
  version_conflict: {
    en: 'It was changed meanwhile: its version is {version}. Read it again.',
    vi: 'Đã bị thay đổi trong lúc này: phiên bản hiện tại là {version}. Hãy đọc lại.',
  },
  immutable: { en: 'cannot be changed', vi: 'không thể thay đổi' },
  license_final: {
    en: 'a license that is {status} cannot be changed',
    vi: 'không thể thay đổi giấy phép ở trạng thái {status}',
  },
  below_used: {
    en: 'must not be below the {used} servers already enrolled',
    vi: 'không được nhỏ hơn {used} máy đã đăng ký',
  },
  over_quota: {
    en: 'the sum of all licenses would be {sum}, over the agent quota of {quota}',
    vi: 'tổng các giấy phép sẽ là {sum}, vượt hạn mức {quota} agent',
  },
  personal_license: { en: 'a personal account has one license', vi: 'tài khoản cá nhân chỉ có một giấy phép' },
  state_refused: { en: 'not possible in state {state}', vi: 'không thể thực hiện ở trạng thái {state}' },
  license_invalid: { en: 'The license is not valid here.', vi: 'Giấy phép không hợp lệ tại đây.' },
  license_revoked: { en: 'The license was revoked or replaced.', vi: 'Giấy phép đã bị thu hồi hoặc thay thế.' },
  license_expired: { en: 'The license has expired.', vi: 'Giấy phép đã hết hạn.' },
  license_used: { en: 'All uses of the license are taken.', vi: 'Giấy phép đã dùng hết số lượt.' },
  already_enrolled: {
    en: 'This host, or the server it belongs to, already has an agent. Revoke that agent first.',
    vi: 'Máy này, hoặc máy chủ tương ứng, đã có agent. Hãy thu hồi agent đó trước.',
  },
  binding_failed: {
    en: 'No server has the address or hostname of this host. Create one, or pin the license to a server.',
    vi: 'Không có máy chủ nào có địa chỉ hoặc tên máy này. Hãy tạo máy chủ, hoặc gắn giấy phép với một máy chủ.',
  },
  quota_exceeded: { en: 'The agent quota of the plan is reached.', vi: 'Đã đạt hạn mức agent của gói.' },
  agent_not_revoked: { en: 'revoke the agent first', vi: 'hãy thu hồi agent trước' },
  server_has_scan_host: { en: 'the server already has a scan host', vi: 'máy chủ đã có scan host' },
  scan_code_invalid: {
    en: 'The code is unknown, used or expired.',
    vi: 'Mã không tồn tại, đã được dùng hoặc đã hết hạn.',
  },
  scan_quota: {
    en: "The plan's number of scan hosts is reached.",
    vi: 'Đã đạt số scan host tối đa của gói.',
  },
  public_key: { en: 'must be base64 of 32 bytes', vi: 'phải là base64 của 32 byte' },
  hash: { en: 'must be 64 hexadecimal digits', vi: 'phải gồm 64 chữ số thập lục phân' },
  signature: { en: 'must be made with the current key', vi: 'phải được ký bằng khóa hiện tại' },
  server_has_agent: { en: 'the server already has an agent', vi: 'máy chủ đã có agent' },
  scope_empty: {
    en: 'must be all, or name at least one server, tag, environment, role or datacenter',
    vi: 'phải là all, hoặc nêu ít nhất một máy chủ, thẻ, môi trường, vai trò hoặc trung tâm dữ liệu',
  },
  rule_decode: { en: '{message}', vi: 'phải là một đối tượng' },
  rule_kind: { en: '{message}', vi: 'phải là một trong threshold, check, agent_down' },
  rule_metric: { en: '{message}', vi: 'phải là một chỉ số trong danh mục' },
  rule_matcher_label: { en: '{message}', vi: 'phải là nhãn mà chỉ số này có' },
  rule_matcher_regex: { en: '{message}', vi: 'phải là biểu thức RE2 hợp lệ, tối đa 128 ký tự' },
  rule_matcher_list: { en: '{message}', vi: 'phải là danh sách từ 1 đến 64 chuỗi ký tự' },
  rule_operator: { en: '{message}', vi: 'phải là một trong > >= < <= == !=' },
  rule_threshold: { en: '{message}', vi: 'là bắt buộc và phải là một số hữu hạn' },
  rule_recover_threshold: { en: '{message}', vi: 'phải là số hữu hạn ở cùng phía với ngưỡng, hoặc null' },
  rule_severity: { en: '{message}', vi: 'phải là một trong info, warning, critical' },
  rule_no_data: { en: '{message}', vi: 'phải là một trong ignore, alert, resolve' },
  rule_duration: { en: '{message}', vi: 'phải là số giây nguyên trong khoảng cho phép' },
  rule_scope: { en: '{message}', vi: 'phạm vi không đúng định dạng' },
  one_agent_down: {
    en: 'the company already has a rule of kind agent_down',
    vi: 'công ty đã có quy tắc loại agent_down',
  },
  rule_too_large: { en: '{message}', vi: 'quá lớn để gửi tới collector' },
  limit_servers: {
    en: 'a company has at most {max} servers; this one would have {count}',
    vi: 'một công ty có tối đa {max} máy chủ; công ty này sẽ có {count}',
  },
  limit_rules: {
    en: 'a company has at most {max} rules; this one would have {count}',
    vi: 'một công ty có tối đa {max} quy tắc; công ty này sẽ có {count}',
  },
  limit_silences: {
    en: 'a company has at most {max} silences that are not over; this one would have {count}',
    vi: 'một công ty có tối đa {max} khoảng im lặng chưa kết thúc; công ty này sẽ có {count}',
  },
  limit_checks: {
    en: 'a company has at most {max} checks; this one would have {count}',
    vi: 'một công ty có tối đa {max} kiểm tra; công ty này sẽ có {count}',
  },
  limit_saved_views: {
    en: 'one keeps at most {max} views: delete one that is not used any more',
    vi: 'mỗi người lưu tối đa {max} chế độ xem: hãy xóa bớt cái không dùng nữa',
  },
  limit_shared_views: {
    en: 'a company shares at most {max} views: delete one that is not used any more',
    vi: 'một công ty dùng chung tối đa {max} chế độ xem: hãy xóa bớt cái không dùng nữa',
  },
  job_owed: {
    en: 'deletes data or takes an agent its access: only super administrators may remove it',
    vi: 'xóa dữ liệu hoặc thu hồi quyền của agent: chỉ quản trị viên cấp cao mới được gỡ bỏ',
  },
  company_levels: {
    en: 'companies stand below one another on at most {max} levels',
    vi: 'các công ty lồng nhau tối đa {max} cấp',
  },
  limit_companies: {
    en: 'a company has at most {max} companies below it; this one would have {count}',
    vi: 'một công ty có tối đa {max} công ty con; công ty này sẽ có {count}',
  },
  limit_scope_ids: {
    en: 'the rules, silences and checks of a company name at most {max} servers in total; those of this one would name {count}: use all, or fewer servers',
    vi: 'các quy tắc, khoảng im lặng và kiểm tra của một công ty nêu tổng cộng tối đa {max} máy chủ; công ty này sẽ nêu {count}: hãy dùng all, hoặc ít máy chủ hơn',
  },
  checks_per_machine: {
    en: 'at most {max} checks apply to one server; {server} would have more',
    vi: 'tối đa {max} kiểm tra cho một máy; {server} sẽ vượt quá',
  },
  check_exists: { en: 'a check with this type and target exists', vi: 'đã có kiểm tra cùng loại và mục tiêu' },
  url_credentials: { en: 'must not hold credentials', vi: 'không được chứa thông tin đăng nhập' },
  host_or_address: { en: 'must be a host name or an IP address', vi: 'phải là tên máy chủ hoặc địa chỉ IP' },
  managed_by: {
    en: 'is kept by another record; change that one',
    vi: 'do một bản ghi khác quản lý; hãy sửa bản ghi đó',
  },
  dns_zone_name: { en: 'must be a domain name such as example.com', vi: 'phải là tên miền, ví dụ example.com' },
  dns_name: {
    en: 'must be @, or a name of labels of at most 63 characters, 253 in all, with * only as the first label',
    vi: 'phải là @, hoặc tên gồm các nhãn tối đa 63 ký tự, tổng cộng 253, * chỉ được là nhãn đầu',
  },
  dns_outside_zone: { en: 'lies outside the zone {zone}', vi: 'nằm ngoài vùng {zone}' },
  dns_value: { en: 'must have the form of {type}, as {example}', vi: 'phải có dạng của {type}, ví dụ {example}' },
  dns_cname_at_apex: { en: 'the zone itself cannot be an alias', vi: 'chính vùng này không thể là bí danh' },
  dns_cname_beside: {
    en: 'an alias (CNAME) and other records cannot have one name',
    vi: 'bí danh (CNAME) và bản ghi khác không thể trùng tên',
  },
  dns_cname_twice: { en: 'the name has another CNAME', vi: 'tên này đã có CNAME khác' },
  dns_cname_itself: { en: 'leads to itself', vi: 'trỏ về chính nó' },
  dns_target_is_cname: { en: 'leads to an alias (CNAME) of the zone', vi: 'trỏ tới một bí danh (CNAME) của vùng' },
  dns_null_mx_beside: { en: '"0 ." stands alone (RFC 7505)', vi: '"0 ." phải đứng một mình (RFC 7505)' },
  dns_spf_twice: { en: 'the name has another v=spf1', vi: 'tên này đã có một v=spf1 khác' },
  dns_service_name: { en: 'must begin with _service._protocol', vi: 'phải bắt đầu bằng _service._protocol' },
  dns_not_reverse: {
    en: 'PTR belongs into zones below in-addr.arpa and ip6.arpa',
    vi: 'PTR chỉ thuộc các vùng dưới in-addr.arpa và ip6.arpa',
  },
  dns_delegation_beside: {
    en: 'a delegated name (NS) has only NS, A and AAAA',
    vi: 'tên được ủy quyền (NS) chỉ có NS, A và AAAA',
  },
  dns_record_twice: { en: 'the record exists already', vi: 'bản ghi đã tồn tại' },
  dns_value_or_values: { en: 'say value or values, not both', vi: 'chỉ ghi value hoặc values, không ghi cả hai' },
  dns_ttl_of_set: {
    en: 'the records of a name and type have one ttl, which is {ttl} above',
    vi: 'các bản ghi cùng tên và loại có chung một ttl, ở trên là {ttl}',
  },
  dns_authoritative: { en: 'must be an authoritative name server', vi: 'phải là máy chủ tên miền có thẩm quyền' },
  dns_last_ns: {
    en: 'A published zone must keep a name server: an NS record at @.',
    vi: 'Vùng đã công bố phải còn ít nhất một máy chủ tên miền: một bản ghi NS ở @.',
  },
  dns_ptr_type: { en: 'only A and AAAA have a PTR', vi: 'chỉ A và AAAA có PTR' },
  dns_ptr_zone: {
    en: 'no reverse zone of the company holds the address',
    vi: 'không có vùng ngược nào chứa địa chỉ này',
  },
  dns_sync_mode: {
    en: 'needs a name server with the integration powerdns',
    vi: 'cần máy chủ tên miền có tích hợp powerdns',
  },
  zone_file_quote: { en: 'a string has no end', vi: 'chuỗi không được đóng' },
  zone_file_parenthesis: { en: 'a parenthesis has no partner', vi: 'dấu ngoặc không khớp' },
  zone_file_escape: { en: 'a backslash says no character', vi: 'dấu gạch chéo ngược không hợp lệ' },
  zone_file_directive: { en: 'only $ORIGIN and $TTL are read', vi: 'chỉ đọc $ORIGIN và $TTL' },
  zone_file_name: { en: 'must begin with a name', vi: 'phải bắt đầu bằng một tên' },
  zone_file_ttl: { en: 'must be a time to live', vi: 'phải là thời gian sống' },
  zone_file_type: { en: 'must name a type', vi: 'phải có kiểu bản ghi' },
  zone_file_value: { en: 'the value does not have the form of its type', vi: 'giá trị không đúng dạng của kiểu' },
  zone_file_soa: { en: 'must be a whole SOA record', vi: 'phải là bản ghi SOA đầy đủ' },
  management_url: {
    en: 'must be an http or https address without user and password',
    vi: 'phải là địa chỉ http hoặc https không chứa tên người dùng và mật khẩu',
  },
  secret_address: {
    en: 'give it again, or remove it, since the address that it is sent to has changed',
    vi: 'hãy nhập lại hoặc xóa, vì địa chỉ nhận giá trị này đã thay đổi',
  },
  secret_unverified: {
    en: 'give it again, or remove it, since the certificate of its address is no longer checked',
    vi: 'hãy nhập lại hoặc xóa, vì chứng chỉ của địa chỉ nhận giá trị này không còn được kiểm tra',
  },
  lb_path: {
    en: 'must be a path that begins with / and has no spaces, quotes or #',
    vi: 'phải là đường dẫn bắt đầu bằng / và không có khoảng trắng, dấu nháy hay #',
  },
  lb_either: {
    en: 'either a server or an address is needed, not both',
    vi: 'cần hoặc máy chủ hoặc địa chỉ, không phải cả hai',
  },
  lb_endpoint_taken: { en: 'the pool has this address and port already', vi: 'nhóm đã có địa chỉ và cổng này' },
  lb_last_member: {
    en: 'is the last member that is up of a pool in use; force does it all the same',
    vi: 'là thành viên cuối cùng đang hoạt động của một nhóm đang dùng; dùng force để vẫn thực hiện',
  },
  lb_other_device: { en: 'is no pool of this device', vi: 'không phải là nhóm của thiết bị này' },
  lb_https_only: { en: 'only https takes certificates', vi: 'chỉ https mới dùng chứng chỉ' },
  lb_no_integration: {
    en: 'the device has no integration by which it could be read',
    vi: 'thiết bị không có tích hợp nào để đọc',
  },
  proxy_url: {
    en: 'must be http://host:port, https://host:port or socks5://host:port, without a user and a path',
    vi: 'phải là http://host:port, https://host:port hoặc socks5://host:port, không có người dùng và đường dẫn',
  },
  proxy_mode: { en: 'belongs to {mode} proxies', vi: 'chỉ dành cho proxy loại {mode}' },
  proxy_reload: { en: 'only reverse proxies have a configuration', vi: 'chỉ proxy ngược mới có cấu hình' },
  proxy_direct: {
    en: 'must be a host name, .suffix, an address or a range of addresses',
    vi: 'phải là tên máy chủ, .hậu-tố, địa chỉ hoặc dải địa chỉ',
  },
  proxy_ports: { en: 'names a port twice', vi: 'có cổng bị lặp lại' },
  proxy_target: { en: 'must be host:port', vi: 'phải là host:port' },
  site_hostname: {
    en: 'must be a host name, or *. and a host name',
    vi: 'phải là tên máy chủ, hoặc *. và tên máy chủ',
  },
  site_hostname_taken: {
    en: 'the proxy has this host name and path already',
    vi: 'proxy đã có tên máy chủ và đường dẫn này',
  },
  site_path: {
    en: 'must begin with / and hold letters, digits and . _ ~ @ : + , = - only',
    vi: 'phải bắt đầu bằng / và chỉ gồm chữ, số và . _ ~ @ : + , = -',
  },
  site_status: {
    en: 'must be a status or a range such as 200-399, or a list of statuses',
    vi: 'phải là mã trạng thái, khoảng như 200-399, hoặc danh sách mã',
  },
  site_upstream: {
    en: 'must have a kind and an id (a port too for a server), or a url such as http://host:port',
    vi: 'phải có kind và id (với máy chủ thì cả port), hoặc url như http://host:port',
  },
  private_target: {
    en: 'does not resolve, or leads to an address that the hub may not connect to',
    vi: 'không phân giải được, hoặc trỏ tới địa chỉ mà hub không được phép kết nối',
  },
  pem_no_certificate: {
    en: 'holds no CERTIFICATE block; give the chain as PEM, the leaf first',
    vi: 'không có khối CERTIFICATE; hãy gửi chuỗi chứng chỉ dạng PEM, chứng chỉ của máy chủ đứng đầu',
  },
  pem_private_key: {
    en: 'holds a private key, which does not belong here; nothing of it was kept',
    vi: 'chứa khóa riêng, không được gửi ở đây; không có gì được lưu lại',
  },
  pem_too_many: { en: 'has more than 10 certificates', vi: 'có hơn 10 chứng chỉ' },
  pem_unreadable: { en: 'has a certificate that cannot be read', vi: 'có chứng chỉ không đọc được' },
  certificate_source: {
    en: 'is required, unless an endpoint says where the certificate is served',
    vi: 'là bắt buộc, trừ khi có endpoint cho biết chứng chỉ được dùng ở đâu',
  },
  certificate_upload: {
    en: 'a renewed certificate is sent to /certificates/upload',
    vi: 'chứng chỉ đã gia hạn phải được gửi tới /certificates/upload',
  },
  certificate_older: { en: 'begins before the certificate that stands', vi: 'bắt đầu trước chứng chỉ hiện tại' },
  certificate_several: {
    en: 'several certificates have these names; say which one is meant',
    vi: 'có nhiều chứng chỉ với các tên này; hãy chỉ rõ chứng chỉ nào',
  },
  certificate_not_seen: {
    en: 'no certificate was uploaded or seen yet',
    vi: 'chưa có chứng chỉ nào được tải lên hoặc nhìn thấy',
  },
  key_mismatch: { en: 'does not belong to the certificate', vi: 'không khớp với chứng chỉ' },
  key_unreadable: {
    en: 'cannot be read; it must be PEM without a password',
    vi: 'không đọc được; phải là PEM không có mật khẩu',
  },
  deployment_exists: {
    en: 'is a deployment of this certificate already',
    vi: 'đã là nơi triển khai của chứng chỉ này',
  },
  deployment_linked: {
    en: 'comes with a virtual server or site; take the certificate away there',
    vi: 'thuộc về một virtual server hoặc site; hãy gỡ chứng chỉ ở đó',
  },
  deployment_last: {
    en: 'is the only source of this certificate; delete the certificate, or upload it first',
    vi: 'là nguồn duy nhất của chứng chỉ này; hãy xóa chứng chỉ, hoặc tải chứng chỉ lên trước',
  },
  server_without_address: { en: 'the server has no address', vi: 'máy chủ không có địa chỉ' },
  http_url: { en: 'must be an address of http or https', vi: 'phải là địa chỉ http hoặc https' },
  private_url: { en: 'must be https and lead to a public address', vi: 'phải là https và trỏ tới địa chỉ công khai' },
  not_draft: { en: 'the server is not a draft', vi: 'máy chủ không phải bản nháp' },
  iac_origin: {
    en: 'the server comes from a manifest; change the manifest',
    vi: 'máy chủ được quản lý bằng manifest; hãy sửa manifest',
  },
  no_difference: { en: 'the inventory has no value for it', vi: 'kiểm kê không có giá trị này' },
  service_permission: {
    en: 'the permission {permission} cannot be given here',
    vi: 'không thể cấp quyền {permission} tại đây',
  },
  permission_not_held: {
    en: 'you do not hold the permission {permission} yourself',
    vi: 'bạn không có quyền {permission}',
  },
  owner_lacks: {
    en: 'the person of the token does not hold the permission {permission}',
    vi: 'người sở hữu token không có quyền {permission}',
  },
  tokens_max: {
    en: 'the company has {max} tokens that work; revoke one first',
    vi: 'công ty đã có {max} token đang hoạt động; hãy thu hồi bớt',
  },
  not_self: { en: 'not possible on yourself', vi: 'không thể thực hiện với chính bạn' },
  built_in: { en: 'a built-in role cannot be changed', vi: 'không thể thay đổi vai trò có sẵn' },
  unknown_permission: { en: 'unknown permission {permission}', vi: 'quyền {permission} không tồn tại' },
  collector_refused: { en: '{message}', vi: 'bộ thu thập từ chối: {message}' },
  in_use: { en: 'is in use', vi: 'đang được sử dụng' },
  csv_quote: {
    en: 'has a quote that is not closed, or text after a closing one',
    vi: 'có dấu ngoặc kép chưa đóng, hoặc có chữ sau dấu đóng',
  },
  csv_columns: { en: 'must be among {values}', vi: 'phải thuộc {values}' },
  csv_width: {
    en: 'has {found} values, the header has {expected}',
    vi: 'có {found} giá trị, dòng tiêu đề có {expected}',
  },
  csv_only: { en: 'is known for text/csv only', vi: 'chỉ dùng được với text/csv' },
  csv_twice: { en: 'stands in line {line} too', vi: 'cũng có ở dòng {line}' },
  image: {
    en: 'must be a data URL of a PNG, JPEG or WebP snapshot',
    vi: 'phải là data URL của ảnh PNG, JPEG hoặc WebP',
  },
  image_size: { en: 'must be at most {max} bytes', vi: 'chỉ được tối đa {max} byte' },
  own_exception: {
    en: 'Somebody else must approve your own request.',
    vi: 'Yêu cầu của bạn phải do người khác duyệt.',
  },
  ids_or_filter: { en: 'give either finding_ids or filter', vi: 'hãy nêu finding_ids hoặc filter' },
  finds_nothing: { en: 'finds no finding', vi: 'không tìm thấy phát hiện nào' },
  absolute_path: { en: 'must be an absolute path', vi: 'phải là đường dẫn tuyệt đối' },
  exports_max: {
    en: 'the company has {max} exports of the last day; wait until one is gone',
    vi: 'công ty đã có {max} bản xuất trong ngày; hãy đợi đến khi một bản hết hạn',
  },
  link_over: { en: 'The link is over. Ask for a new one.', vi: 'Liên kết đã hết hạn. Hãy lấy liên kết mới.' },
  export_not_ready: {
    en: 'The export is not ready: its state is {state}.',
    vi: 'Bản xuất chưa sẵn sàng: trạng thái là {state}.',
  },
  exports_kept: {
    en: 'the company has {max} exports; remove one first',
    vi: 'công ty đã có {max} bản xuất; hãy xóa bớt',
  },
  push_platform: {
    en: 'push by {platform} is not set up in this hub',
    vi: 'hub này chưa thiết lập đẩy qua {platform}',
  },
  form: { en: 'must be a form (multipart/form-data)', vi: 'phải là một biểu mẫu (multipart/form-data)' },
  base64: { en: 'must be base64', vi: 'phải là base64' },
  file_empty: { en: 'is empty', vi: 'là tệp rỗng' },
  file_executable: { en: 'is a program: these are not kept', vi: 'là chương trình: không được lưu' },
  file_markup: { en: 'is HTML or SVG: these are not kept', vi: 'là HTML hoặc SVG: không được lưu' },
  file_private_key: { en: 'holds a private key: these are not kept', vi: 'chứa khóa riêng: không được lưu' },
  file_unknown: {
    en: 'is of no type that is kept: PDF, PNG, JPEG, GIF, WebP, text, CSV, JSON, YAML, PEM, ZIP or gzip',
    vi: 'không thuộc loại được lưu: PDF, PNG, JPEG, GIF, WebP, văn bản, CSV, JSON, YAML, PEM, ZIP hoặc gzip',
  },
  files_bytes: {
    en: 'the files of a company have at most {max} bytes; these would have {count}',
    vi: 'tổng dung lượng tệp của công ty tối đa {max} byte; sẽ thành {count}',
  },
  limit_files: { en: 'a company has at most {max} files', vi: 'một công ty có tối đa {max} tệp' },
  command_under_way: {
    en: 'A run of this command is under way.',
    vi: 'Lệnh này đang được thực hiện.',
  },
  confirm: { en: 'must be true for this', vi: 'phải là true cho thao tác này' },
  queue_never_paused: {
    en: 'this queue cannot be paused: the hub itself needs it',
    vi: 'không thể tạm dừng hàng đợi này: hub cần nó để hoạt động',
  },
  maintenance: {
    en: 'The hub is in maintenance: reading works, changes are refused. {message}',
    vi: 'Hub đang bảo trì: vẫn đọc được, mọi thay đổi bị từ chối. {message}',
  },
  not_settable: {
    en: 'is set by the configuration of the hub, not over the API',
    vi: 'được đặt trong cấu hình của hub, không đặt qua API',
  },
  level_needed: {
    en: 'say which value is meant: company or system',
    vi: 'hãy nêu rõ giá trị của công ty (company) hay của hệ thống (system)',
  },
  setting_domain: { en: 'is not a value that this setting can have', vi: 'không phải giá trị hợp lệ của cài đặt này' },
  no_mail_server: { en: 'no mail server is set (smtp.url)', vi: 'chưa đặt máy chủ thư (smtp.url)' },
  matcher_unavailable: {
    en: 'The matcher cannot be reached at the moment.',
    vi: 'Hiện không thể kết nối tới matcher.',
  },
  iac_upload_disabled: {
    en: 'This company takes no YAML. Use the form.',
    vi: 'Công ty này không nhận YAML. Hãy dùng biểu mẫu.',
  },
  managed_by_resource: {
    en: 'belongs to a {kind}: change that instead',
    vi: 'thuộc về {kind}: hãy sửa ở đó',
  },
  node_address: {
    en: 'has no address to connect to: give one to what it names, or name an external host',
    vi: 'không có địa chỉ để kết nối: hãy đặt địa chỉ cho đối tượng được nêu, hoặc nêu một host bên ngoài',
  },
  node_same: { en: 'must differ from the source', vi: 'phải khác với nguồn' },
  node_key: {
    en: 'must be kind:id, service:name or external:host',
    vi: 'phải có dạng kind:id, service:tên hoặc external:host',
  },
  http_only: { en: 'is for http and https only', vi: 'chỉ dùng cho http và https' },
  probe_udp: { en: 'udp can only be probed by none', vi: 'udp chỉ dùng được với none' },
  probe_server: { en: 'agent needs a server as the source', vi: 'agent cần nguồn là một máy chủ' },
  probe_none: { en: 'the connection has no check of an agent', vi: 'kết nối không có kiểm tra nào của agent' },
  url_path: { en: 'must begin with /', vi: 'phải bắt đầu bằng /' },
  managed_by_manifest: {
    en: 'comes from manifest {manifest}; change the manifest',
    vi: 'được quản lý bằng manifest {manifest}; hãy sửa manifest',
  },
  map: { en: 'must be a map', vi: 'phải là một map' },
  map_of: { en: 'must be a map with {members}', vi: 'phải là một map gồm {members}' },
  must_be: { en: 'must be {value}', vi: 'phải là {value}' },
  unknown_key: { en: 'unknown key', vi: 'khóa không hợp lệ' },
  unknown_key_of: { en: 'unknown key; allowed: {allowed}', vi: 'khóa không hợp lệ; được phép: {allowed}' },
  unknown_kind: { en: 'unknown kind; allowed: {allowed}', vi: 'loại không hợp lệ; được phép: {allowed}' },
  unknown_company: { en: 'unknown company; allowed: {allowed}', vi: 'công ty không hợp lệ; được phép: {allowed}' },
  slug_form: {
    en: 'must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends',
    vi: 'phải gồm 1 đến 63 chữ thường, chữ số và dấu gạch nối, đầu và cuối là chữ hoặc số',
  },
  path_differs: {
    en: 'the path says {part} {path}, the manifest {contents}',
    vi: 'đường dẫn ghi {part} là {path}, còn manifest ghi {contents}',
  },
  no_secrets: {
    en: 'a manifest holds no secrets; set it with PATCH after applying',
    vi: 'manifest không chứa bí mật; hãy đặt bằng PATCH sau khi áp dụng',
  },
  attachments_max: { en: 'a run has at most {max} attachments', vi: 'một lượt chạy có tối đa {max} tệp đính kèm' },
  own_approval: {
    en: 'Who asked for it cannot decide on it.',
    vi: 'Người yêu cầu không thể tự quyết định.',
  },
  not_approver: {
    en: 'You are no approver of the current step.',
    vi: 'Bạn không phải người duyệt của bước hiện tại.',
  },
  decided_already: { en: 'you have decided already', vi: 'bạn đã quyết định rồi' },
  no_delegate: {
    en: 'must be somebody of the company with approvals.decide, neither the requester nor earlier in the chain, over at most 3 links',
    vi: 'phải là người trong công ty có quyền approvals.decide, không phải người yêu cầu hay người trước trong chuỗi, tối đa 3 lần ủy quyền',
  },
  no_approvers: {
    en: 'needs approvers: a role, a team or people',
    vi: 'cần có người duyệt: vai trò, nhóm hoặc người dùng',
  },
  login_failed: { en: 'E-mail or password is wrong.', vi: 'E-mail hoặc mật khẩu không đúng.' },
} as const

export type TextKey = keyof typeof texts
export type Words = { readonly key: TextKey; readonly params?: Readonly<Record<string, string | number>> }

export const words = (key: TextKey, params?: Readonly<Record<string, string | number>>): Words =>
  params ? { key, params } : { key }

/** The text in the language, with its placeholders filled. */
export function render(text: Words, language: Language): string {
  return texts[text.key][language].replace(/\{(\w+)\}/g, (_, name: string) => String(text.params?.[name] ?? ''))
}
