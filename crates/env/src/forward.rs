//! A macro for wrappers of an environment.

/// Implements methods of [`ExecutionEnvironment`](crate::ExecutionEnvironment) by calling the same methods of a field.
/// Belongs into an `impl` of the trait.
///
/// The methods return the futures of the field, with the signatures that `async_trait` gives to an `async fn`.
///
/// ```text
/// #[async_trait]
/// impl ExecutionEnvironment for ReadOnlyEnvironment {
///     forward! { inner: working_directory, platform, os_version, read }
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! forward {
    ($field:ident: $($method:ident),+ $(,)?) => {
        $($crate::forward!(@$method $field);)+
    };
    (@working_directory $field:ident) => {
        fn working_directory(&self) -> &std::path::Path {
            self.$field.working_directory()
        }
    };
    (@home_directory $field:ident) => {
        fn home_directory(&self) -> Option<&std::path::Path> {
            self.$field.home_directory()
        }
    };
    (@platform $field:ident) => {
        fn platform(&self) -> &str {
            self.$field.platform()
        }
    };
    (@os_version $field:ident) => {
        fn os_version(&self) -> &str {
            self.$field.os_version()
        }
    };
    (@output_limits $field:ident) => {
        fn output_limits(&self) -> $crate::OutputLimits {
            self.$field.output_limits()
        }
    };
    (@shares_host_files $field:ident) => {
        fn shares_host_files(&self) -> bool {
            self.$field.shares_host_files()
        }
    };
    (@command_limits $field:ident) => {
        fn command_limits(&self) -> Option<String> {
            self.$field.command_limits()
        }
    };
    (@resolve $field:ident) => {
        fn resolve(&self, path: &std::path::Path) -> std::path::PathBuf {
            self.$field.resolve(path)
        }
    };
    (@initialize $field:ident) => {
        $crate::forward!(@async $field initialize<>() -> ());
    };
    (@cleanup $field:ident) => {
        $crate::forward!(@async $field cleanup<>() -> ());
    };
    (@place $field:ident) => {
        $crate::forward!(@async $field place<>() -> Option<String>);
    };
    (@spawn $field:ident) => {
        $crate::forward!(@async $field spawn<>(command: $crate::Command) -> Box<dyn $crate::Process>);
    };
    (@exec_command $field:ident) => {
        $crate::forward!(@async $field exec_command<>(request: $crate::ExecRequest) -> $crate::ExecResult);
    };
    (@read $field:ident) => {
        $crate::forward!(
            @async $field read<'p>(path: &'p std::path::Path, range: Option<std::ops::Range<u64>>) -> Vec<u8>
        );
    };
    (@write $field:ident) => {
        $crate::forward!(@async $field write<'p, 'b>(path: &'p std::path::Path, bytes: &'b [u8]) -> ());
    };
    (@metadata $field:ident) => {
        $crate::forward!(@async $field metadata<'p>(path: &'p std::path::Path) -> $crate::Metadata);
    };
    (@list $field:ident) => {
        $crate::forward!(@async $field list<'p>(path: &'p std::path::Path) -> Vec<$crate::DirEntry>);
    };
    (@remove $field:ident) => {
        $crate::forward!(@async $field remove<'p>(path: &'p std::path::Path) -> ());
    };
    (@rename $field:ident) => {
        $crate::forward!(
            @async $field rename<'f, 't>(from: &'f std::path::Path, to: &'t std::path::Path) -> ()
        );
    };
    (@canonicalize $field:ident) => {
        $crate::forward!(@async $field canonicalize<'p>(path: &'p std::path::Path) -> std::path::PathBuf);
    };
    (@canonicalize_many $field:ident) => {
        $crate::forward!(
            @async $field
            canonicalize_many<'p>(paths: &'p [std::path::PathBuf])
                -> Vec<Result<std::path::PathBuf, $crate::EnvError>>
        );
    };
    (@read_file $field:ident) => {
        $crate::forward!(
            @async $field
            read_file<'p>(path: &'p std::path::Path, offset: Option<usize>, limit: Option<usize>) -> String
        );
    };
    (@find_files $field:ident) => {
        $crate::forward!(
            @async $field find_files<'r>(request: &'r $crate::GlobRequest) -> Vec<std::path::PathBuf>
        );
    };
    (@grep $field:ident) => {
        $crate::forward!(@async $field grep<'r>(request: &'r $crate::GrepRequest) -> $crate::GrepOutput);
    };
    (@create_directory $field:ident) => {
        $crate::forward!(@async $field create_directory<'p>(path: &'p std::path::Path) -> ());
    };
    (@create_symlink $field:ident) => {
        $crate::forward!(
            @async $field create_symlink<'p, 't>(path: &'p std::path::Path, target: &'t std::path::Path) -> ()
        );
    };
    (@set_mode $field:ident) => {
        $crate::forward!(@async $field set_mode<'p>(path: &'p std::path::Path, mode: u32) -> ());
    };
    (@walk $field:ident) => {
        $crate::forward!(@async $field walk<'r>(request: &'r $crate::WalkRequest) -> $crate::WalkOutput);
    };
    (@read_many $field:ident) => {
        $crate::forward!(
            @async $field
            read_many<'p>(paths: &'p [std::path::PathBuf], limits: $crate::ReadLimits) -> Vec<$crate::FileContent>
        );
    };
    (@async $field:ident $method:ident<$($life:lifetime),*>($($name:ident: $type:ty),*) -> $output:ty) => {
        fn $method<'this, $($life,)* 'future>(
            &'this self,
            $($name: $type),*
        ) -> std::pin::Pin<Box<dyn std::future::Future<Output = Result<$output, $crate::EnvError>> + Send + 'future>>
        where
            Self: 'future,
            'this: 'future,
            $($life: 'future),*
        {
            self.$field.$method($($name),*)
        }
    };
}

pub(crate) use forward;
