/// The apps of namespaces with `appVersion: auto`, in memory.
struct AppUpdateState {
  /// By namespace, as far as they were needed.
  var versions: [Int: AppVersions] = [:]
  /// nil if no app's older rows are being cleared.
  var clearing: UpdateClearing?
}
