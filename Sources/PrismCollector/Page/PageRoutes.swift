import PrismHTTP

/// All paths of the API.
enum PageRoutes {
  static let filter = ["namespace", "type", "device", "kind", "since", "until", "time", "meta"]

  static let all: [PageRoute] = [
    PageRoute(.get, "/session", .everybody) { api, request throws(CollectorRefusal) in try await api.session(request) },
    PageRoute(.post, "/session", .everybody) { api, request throws(CollectorRefusal) in try await api.signIn(request) },
    PageRoute(.post, "/session/end", .everybody) { api, request throws(CollectorRefusal) in
      try await api.signOut(request)
    },
    PageRoute(.get, "/fleet") { api, request throws(CollectorRefusal) in try await api.fleet(request) },
    PageRoute(.get, "/devices", .viewer, ["search", "where", "sort", "after", "limit"]) {
      api, request throws(CollectorRefusal) in try await DeviceAPI(api: api).devices(request)
    },
    PageRoute(.get, "/device", .viewer, ["id"]) { api, request throws(CollectorRefusal) in
      try await api.device(request)
    },
    PageRoute(.get, "/outputs/{name}/dead", .viewer, ["after", "limit"]) { api, request throws(CollectorRefusal) in
      try await api.deadLetters(request)
    },
    PageRoute(.post, "/outputs/{name}/dead", .operator) { api, request throws(CollectorRefusal) in
      try await api.changeDeadLetters(request)
    },
    PageRoute(.get, "/types") { api, request throws(CollectorRefusal) in try await api.types(request) },
    PageRoute(.get, "/reports", .viewer, filter + ["after", "before", "order", "limit"]) {
      api, request throws(CollectorRefusal) in try await api.reports(request)
    },
    PageRoute(.get, "/reports/{id}") { api, request throws(CollectorRefusal) in try await api.report(request) },
    PageRoute(.get, "/reports/{id}/payload") { api, request throws(CollectorRefusal) in
      try await api.payload(request)
    },
    PageRoute(.get, "/histogram", .viewer, filter + ["buckets", "by"]) { api, request throws(CollectorRefusal) in
      try await api.histogram(request)
    },
    PageRoute(.get, "/aggregate", .viewer, filter + ["buckets", "by", "key"]) {
      api, request throws(CollectorRefusal) in try await api.aggregate(request)
    },
    PageRoute(.get, "/export", .viewer, filter + ["before", "limit", "format"]) {
      api, request throws(CollectorRefusal) in try await api.export(request)
    },
    PageRoute(.get, "/tail", .viewer, filter + ["after"]) { api, request throws(CollectorRefusal) in
      try await api.tail(request)
    },
    PageRoute(.get, "/crashes", .viewer, ["namespace", "device", "since", "until", "state", "limit"]) {
      api, request throws(CollectorRefusal) in try await CrashAPI(api: api).crashes(request)
    },
    PageRoute(.get, "/crashes/{fingerprint}") { api, request throws(CollectorRefusal) in
      try await CrashAPI(api: api).crash(request)
    },
    PageRoute(.post, "/crashes/{fingerprint}/state", .operator) { api, request throws(CollectorRefusal) in
      try await CrashAPI(api: api).changeCrash(request)
    },
    PageRoute(.post, "/crashes/{fingerprint}/group", .operator) { api, request throws(CollectorRefusal) in
      try await CrashAPI(api: api).regroupCrash(request)
    },
    PageRoute(.get, "/symbols") { api, request throws(CollectorRefusal) in
      try await SymbolAPI(api: api).list(request)
    },
    PageRoute(.post, "/symbols", .operator, ["upload", "offset", "size"]) { api, request throws(CollectorRefusal) in
      try await SymbolAPI(api: api).add(request)
    },
    PageRoute(.delete, "/symbols/{buildId}", .operator) { api, request throws(CollectorRefusal) in
      try await SymbolAPI(api: api).remove(request)
    },
    PageRoute(.get, "/notices", .viewer, ["before", "state", "limit"]) { api, request throws(CollectorRefusal) in
      try await NoticeAPI(api: api).list(request)
    },
    PageRoute(.post, "/notices/test", .operator) { api, request throws(CollectorRefusal) in
      try await NoticeAPI(api: api).test(request)
    },
    PageRoute(.post, "/notices/{id}", .operator) { api, request throws(CollectorRefusal) in
      try await NoticeAPI(api: api).change(request)
    },
    PageRoute(.get, "/records", .viewer, ["namespace", "table", "device", "id", "field", "after", "limit"]) {
      api, request throws(CollectorRefusal) in try await RecordAPI(api: api).find(request)
    },
    PageRoute(.get, RecordAPI.prefix, .viewer, ["device", "field", "after", "limit"]) {
      api, request throws(CollectorRefusal) in
      try await RecordAPI(api: api).list(request)
    },
    PageRoute(.post, RecordAPI.prefix, .operator, ["device", "firstLine"]) { api, request throws(CollectorRefusal) in
      try await RecordAPI(api: api).changeMany(request)
    },
    PageRoute(.get, RecordAPI.prefix + "/{record}", .viewer, ["device"]) { api, request throws(CollectorRefusal) in
      try await RecordAPI(api: api).get(request)
    },
    PageRoute(.put, RecordAPI.prefix + "/{record}", .operator, ["device"]) { api, request throws(CollectorRefusal) in
      try await RecordAPI(api: api).put(request)
    },
    PageRoute(.patch, RecordAPI.prefix + "/{record}", .operator, ["device"]) { api, request throws(CollectorRefusal) in
      try await RecordAPI(api: api).patch(request)
    },
    PageRoute(.delete, RecordAPI.prefix + "/{record}", .operator, ["device"]) { api, request throws(CollectorRefusal) in
      try await RecordAPI(api: api).delete(request)
    },
    PageRoute(.get, "/configuration", .viewer, ["after", "failed", "limit"]) {
      api, request throws(CollectorRefusal) in try await api.configuration(request)
    },
    PageRoute(.post, "/configuration/rollout", .operator) { api, request throws(CollectorRefusal) in
      try await RolloutAPI(api: api).changeRollout(request)
    },
  ]
}
