; The Windows setup of Bridge, for one user, without administrator rights. Filled
; in by `go run ./build package`: VERSION, BUILT (folder of the programs), SETUP
; (the result), ICON, and SIGN (a program that signs the file it is given) if any.
;
; /S installs silently, /D=FOLDER chooses the folder. What the owner has in
; %USERPROFILE%\.bridge is never touched.

Unicode true
Target amd64-unicode
ManifestDPIAware true
RequestExecutionLevel user
SetCompressor /SOLID lzma
SetDateSave off

!include MUI2.nsh
!include LogicLib.nsh
!include FileFunc.nsh

Name "Bridge"
OutFile "${SETUP}"
InstallDir "$LOCALAPPDATA\Programs\Bridge"
InstallDirRegKey HKCU "Software\Bridge" "Folder"
BrandingText "Bridge ${VERSION}"
VIProductVersion "${VERSION}.0"
VIAddVersionKey ProductName "Bridge"
VIAddVersionKey ProductVersion "${VERSION}"
VIAddVersionKey FileVersion "${VERSION}"
VIAddVersionKey FileDescription "Setup of Bridge"
VIAddVersionKey LegalCopyright "Bridge"

!ifdef SIGN
  !finalize '"${SIGN}" "%1"' = 0
  !uninstfinalize '"${SIGN}" "%1"' = 0
!endif

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_FINISHPAGE_RUN "$INSTDIR\bridge-desktop.exe"
!define MUI_FINISHPAGE_RUN_TEXT "Start Bridge"
!define MUI_FINISHPAGE_TEXT "Bridge is installed.$\r$\n$\r$\nA Bridge that was running goes on with its old version until you quit it from the tray; agent sessions do so until they end. Nothing is lost in between."
!define MUI_UNCONFIRMPAGE_TEXT_TOP "Bridge will be removed. Your messages and decisions stay in the folder .bridge of your user profile. If you connected agents, run $\"bridge uninstall$\" first to take that back."
!insertmacro MUI_PAGE_COMPONENTS
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\Bridge"

; PutAside frees the name of a program. Windows does not let go of one that runs,
; but lets it be renamed: sessions that use it go on undisturbed.
!macro PutAside NAME
  Delete "$INSTDIR\${NAME}-before1.exe"
  Delete "$INSTDIR\${NAME}-before2.exe"
  ClearErrors
  Delete "$INSTDIR\${NAME}.exe"
  ${If} ${FileExists} "$INSTDIR\${NAME}.exe"
    ClearErrors
    Rename "$INSTDIR\${NAME}.exe" "$INSTDIR\${NAME}-before1.exe"
    ${If} ${Errors}
      ClearErrors
      Rename "$INSTDIR\${NAME}.exe" "$INSTDIR\${NAME}-before2.exe"
    ${EndIf}
    ${If} ${Errors}
      SetErrorLevel 1
      Abort "${NAME}.exe runs and cannot be replaced. Quit Bridge and end your agent sessions, then try again."
    ${EndIf}
  ${EndIf}
!macroend

; Gone removes a program, or moves one that runs to the folder of temporary files.
!macro Gone NAME
  ClearErrors
  Delete "$INSTDIR\${NAME}.exe"
  ${If} ${FileExists} "$INSTDIR\${NAME}.exe"
    GetTempFileName $0
    Delete $0
    Rename "$INSTDIR\${NAME}.exe" "$0"
  ${EndIf}
!macroend

; Retire has a broker in the background finish its work and leave.
!macro Retire
  ${If} ${FileExists} "$INSTDIR\bridge.exe"
    nsExec::Exec '"$INSTDIR\bridge.exe" retire'
    Pop $0
  ${EndIf}
!macroend

Section "Bridge"
  SectionIn RO
  SetOutPath "$INSTDIR"
  !insertmacro Retire
  !insertmacro PutAside "bridge"
  !insertmacro PutAside "bridge-hook"
  !insertmacro PutAside "bridge-mcp"
  !insertmacro PutAside "bridge-worker"
  !insertmacro PutAside "bridge-desktop"
  File "${BUILT}/bridge.exe"
  File "${BUILT}/bridge-hook.exe"
  File "${BUILT}/bridge-mcp.exe"
  File "${BUILT}/bridge-worker.exe"
  File "${BUILT}/bridge-desktop.exe"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\Bridge.lnk" "$INSTDIR\bridge-desktop.exe"
  WriteRegStr HKCU "Software\Bridge" "Folder" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "Bridge"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "$INSTDIR\bridge-desktop.exe"
  WriteRegStr HKCU "${UNINSTALL}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${UNINSTALL}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL}" "NoRepair" 1
  ${GetSize} "$INSTDIR" "/S=0K" $0 $1 $2
  WriteRegDWORD HKCU "${UNINSTALL}" "EstimatedSize" $0
SectionEnd

; The same link that the app's own switch makes and removes.
Section /o "Start at login"
  CreateShortcut "$SMSTARTUP\bridge.lnk" "$INSTDIR\bridge-desktop.exe" "--hidden"
SectionEnd

Section "Uninstall"
  !insertmacro Retire
  !insertmacro Gone "bridge"
  !insertmacro Gone "bridge-hook"
  !insertmacro Gone "bridge-mcp"
  !insertmacro Gone "bridge-worker"
  !insertmacro Gone "bridge-desktop"
  !insertmacro Gone "bridge-before1"
  !insertmacro Gone "bridge-before2"
  !insertmacro Gone "bridge-hook-before1"
  !insertmacro Gone "bridge-hook-before2"
  !insertmacro Gone "bridge-mcp-before1"
  !insertmacro Gone "bridge-mcp-before2"
  !insertmacro Gone "bridge-worker-before1"
  !insertmacro Gone "bridge-worker-before2"
  !insertmacro Gone "bridge-desktop-before1"
  !insertmacro Gone "bridge-desktop-before2"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\Bridge.lnk"
  Delete "$SMSTARTUP\bridge.lnk"
  DeleteRegKey HKCU "Software\Bridge"
  DeleteRegKey HKCU "${UNINSTALL}"
SectionEnd
